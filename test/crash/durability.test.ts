import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createDatabase, databases, type TestDatabase } from "../support/databases.ts";
import { graphsIn } from "../support/language.ts";
import { freePort, type ServerProcess, startProcess } from "../support/process.ts";
import { rowsOfThread } from "../support/rows.ts";
import { until } from "../support/until.ts";

describe.each(databases)("a kill in a step on %s", (name) => {
  let database: TestDatabase;
  let port: number;
  let server: ServerProcess | undefined;
  beforeEach(async () => {
    database = await createDatabase(name);
    port = await freePort();
  });
  afterEach(async () => {
    server?.child.kill("SIGKILL");
    await server?.ended;
    await database.drop();
  });

  const start = async (failpoint?: string): Promise<ServerProcess> => {
    const { config, env } = await graphsIn("crash");
    server = await startProcess({
      data: database.data_dir,
      databaseUrl: database.url,
      port,
      config,
      env: { ...env, ...(failpoint && { FAILPOINT: failpoint }) },
      ...(failpoint && { preload: "test/crash/failpoints.ts" }),
    });
    return server;
  };

  // Which step it is makes no difference to a database.
  it.each(
    [
      { dies_in: "b", began: "abbc" },
      { dies_in: "a", began: "aabc" },
      { dies_in: "c", began: "abcc" },
    ].slice(0, name === "sqlite" ? 3 : 1),
  )("makes that step run again and no other ($dies_in: $began)", async ({ dies_in, began }) => {
    const log = join(database.data_dir, "log.txt");
    const runs = `http://127.0.0.1:${port}/threads/${randomUUID()}/runs`;
    const { ended } = await start();
    const body = JSON.stringify({ assistant_id: "steps", input: { log, dies_in }, if_not_exists: "create" });
    // The server may end before it has answered.
    await fetch(runs, { method: "POST", headers: { "content-type": "application/json" }, body }).catch(() => undefined);
    await ended;

    await start();
    const [{ run_id }] = (await (await fetch(runs)).json()) as [{ run_id: string }];
    const joined = await fetch(`${runs}/${run_id}/join`);

    expect(await joined.json()).toMatchObject({ done: ["a", "b", "c"] });
    expect(readFileSync(log, "utf8")).toBe(began);
  });

  it("of a deletion leaves a thread that shows no more than it has", async () => {
    const thread = `http://127.0.0.1:${port}/threads/${randomUUID()}`;
    const { ended } = await start("after-delete");
    const body = JSON.stringify({ assistant_id: "ledger", input: { n: 1 }, if_not_exists: "create" });
    const headers = { "content-type": "application/json" };
    for (let n = 0; n < 2; n++) await (await fetch(`${thread}/runs/wait`, { method: "POST", headers, body })).json();
    const [{ run_id }] = (await (await fetch(`${thread}/runs`)).json()) as [{ run_id: string }];
    await expect(fetch(`${thread}/runs/${run_id}`, { method: "DELETE" })).rejects.toThrow();
    await ended;

    await start();
    expect((await fetch(`${thread}/runs/${run_id}`)).status).toBe(404);
    const { values } = (await (await fetch(thread)).json()) as { values: { items: string[] } };
    expect(values.items).toEqual(["a1", "b1", "c1"]);
  });

  it.each([
    ["interrupt_before", "b"],
    ["interrupt_after", "a"],
  ])("leaves a run at its breakpoint (%s)", async (kind, node) => {
    const log = join(database.data_dir, "log.txt");
    const thread = `http://127.0.0.1:${port}/threads/${randomUUID()}`;
    const { ended } = await start("before-settle");
    const body = { assistant_id: "steps", input: { log }, [kind]: [node], if_not_exists: "create" };
    const headers = { "content-type": "application/json" };
    await fetch(`${thread}/runs`, { method: "POST", headers, body: JSON.stringify(body) }).catch(() => undefined);
    await ended;

    await start();
    const [{ run_id }] = (await (await fetch(`${thread}/runs`)).json()) as [{ run_id: string }];
    expect(await (await fetch(`${thread}/runs/${run_id}/join`)).json()).toMatchObject({ done: ["a"] });
    expect(await (await fetch(thread)).json()).toMatchObject({ status: "interrupted", values: { done: ["a"] } });
    // The last checkpoint can be stored together with the end of the run.
    expect(readFileSync(log, "utf8")).toMatch(/^aa?$/);
  });

  it("gives an answer once, to the question that it was for", async () => {
    const thread_id = randomUUID();
    const runs = `http://127.0.0.1:${port}/threads/${thread_id}/runs`;
    const log = join(database.data_dir, "stored");
    const post = async (path: string, body: object) => {
      const headers = { "content-type": "application/json" };
      const answer = await fetch(`${runs}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
      return (await answer.json()) as { run_id: string };
    };
    const first = await start();
    await post("/wait", { assistant_id: "asks", input: { log }, if_not_exists: "create" });
    first.child.kill("SIGKILL");
    await first.ended;

    // It dies when the graph has asked its second question, before that is stored.
    const second = await start("before-settle");
    const { run_id } = await post("", { assistant_id: "asks", command: { resume: "one" } });
    await until("the answer is stored", async () =>
      (await rowsOfThread(database, thread_id)).checkpoint_writes?.some((row) => row.includes("__resume__")),
    );
    writeFileSync(log, "");
    await second.ended;

    await start();
    const joined = await (await fetch(`${runs}/${run_id}/join`)).json();
    expect(joined).toMatchObject({ __interrupt__: [{ value: "second?" }] });
    expect(await post("/wait", { assistant_id: "asks", command: { resume: "two" } })).toMatchObject({
      done: ["one", "two"],
    });
  });
});
