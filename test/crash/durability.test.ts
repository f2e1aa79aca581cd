import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createDatabase, databases, type TestDatabase } from "../support/databases.ts";
import { freePort, type ServerProcess, startProcess } from "../support/process.ts";

describe.each(databases)("a kill in a step on %s", (name) => {
  let database: TestDatabase;
  let server: ServerProcess | undefined;
  beforeEach(async () => {
    database = await createDatabase(name);
  });
  afterEach(async () => {
    server?.child.kill("SIGKILL");
    await server?.ended;
    await database.drop();
  });

  it.each([
    { dies_in: "a", began: "aabc" },
    { dies_in: "b", began: "abbc" },
    { dies_in: "c", began: "abcc" },
  ])("makes that step run again and no other ($dies_in: $began)", async ({ dies_in, began }) => {
    const port = await freePort();
    const options = {
      data: database.data_dir,
      databaseUrl: database.url,
      port,
      config: "test/graphs/crash/langgraph.json",
    };
    const log = join(database.data_dir, "log.txt");
    const runs = `http://127.0.0.1:${port}/threads/${randomUUID()}/runs`;
    server = await startProcess(options);
    const body = JSON.stringify({ assistant_id: "steps", input: { log, dies_in }, if_not_exists: "create" });
    const created = await fetch(runs, { method: "POST", headers: { "content-type": "application/json" }, body });
    const { run_id } = (await created.json()) as { run_id: string };
    await server.ended;

    server = await startProcess(options);
    const joined = await fetch(`${runs}/${run_id}/join`);

    expect(await joined.json()).toMatchObject({ done: ["a", "b", "c"] });
    expect(readFileSync(log, "utf8")).toBe(began);
  });

  it("gives an answer once, to the question that it was for", async () => {
    const port = await freePort();
    const options = {
      data: database.data_dir,
      databaseUrl: database.url,
      port,
      config: "test/graphs/crash/langgraph.json",
    };
    const runs = `http://127.0.0.1:${port}/threads/${randomUUID()}/runs`;
    const post = async (path: string, body: object) => {
      const headers = { "content-type": "application/json" };
      const answer = await fetch(`${runs}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
      return (await answer.json()) as { run_id: string };
    };
    server = await startProcess(options);
    await post("/wait", { assistant_id: "asks", input: {}, if_not_exists: "create" });
    server.child.kill("SIGKILL");
    await server.ended;

    // It dies when the graph has asked its second question, before that is stored.
    const env = { FAILPOINT: "before-settle", FAIL_AFTER: "1" };
    server = await startProcess({ ...options, env, preload: "test/crash/failpoints.ts" });
    const { run_id } = await post("", { assistant_id: "asks", command: { resume: "one" } });
    await server.ended;

    server = await startProcess(options);
    const joined = await (await fetch(`${runs}/${run_id}/join`)).json();
    expect(joined).toMatchObject({ __interrupt__: [{ value: "second?" }] });
    expect(await post("/wait", { assistant_id: "asks", command: { resume: "two" } })).toMatchObject({
      done: ["one", "two"],
    });
  });
});
