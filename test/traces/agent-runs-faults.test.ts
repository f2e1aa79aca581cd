import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Wire } from "../http/scenario.ts";
import { createDatabase, databases, type TestDatabase } from "../support/databases.ts";
import { freePort, type ServerProcess, startProcess } from "../support/process.ts";
import { until } from "../support/until.ts";

describe.each(databases)("a kill of the server or of a graph host on %s", (name) => {
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
    server = await startProcess({
      data: database.data_dir,
      databaseUrl: database.url,
      port,
      config: "test/graphs/traced/langgraph.json",
      env: { THREADMILL_TRACING: "on", ...(failpoint && { FAILPOINT: failpoint }) },
      ...(failpoint && { preload: "test/crash/failpoints.ts" }),
    });
    return server;
  };
  const send = async (method: string, path: string, body?: object): Promise<{ status: number; body: Wire }> => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers, body: JSON.stringify(body) });
    const text = await response.text();
    return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
  };
  const readTrace = async (run_id: string) => send("GET", `/api/v1/runs/${run_id}`);
  const newRun = async (body: object): Promise<Wire> =>
    (await send("POST", `/threads/${randomUUID()}/runs`, { if_not_exists: "create", ...body })).body;

  it("between the deletion of a run and that of its trace deletes the trace with the next start", async () => {
    const { ended } = await start("after-delete");
    const run = await newRun({ assistant_id: "agent", input: { messages: [{ type: "human", content: "when?" }] } });
    await send("GET", `/threads/${run.thread_id}/runs/${run.run_id}/join`);
    const trace = await until("the trace is stored", async () => {
      const { status, body } = await readTrace(run.run_id);
      return status === 200 && body.status === "success" && body;
    });
    await expect(send("DELETE", `/threads/${run.thread_id}/runs/${run.run_id}`)).rejects.toThrow();
    await ended;

    await start();
    for (const id of [run.run_id, ...trace.child_run_ids])
      await until("the trace is deleted", async () => (await readTrace(id)).status === 404);
  });

  it.runIf(name === "sqlite")("by a graph that ends its host each time leaves a trace with an error", async () => {
    await start();
    const run = await newRun({ assistant_id: "dies", input: { steps: ["in"] } });
    const root = await until("the trace has ended", async () => {
      const { body } = await readTrace(run.run_id);
      return body?.status === "error" && body;
    });
    expect(root).toMatchObject({ name: "dies", error: "the worker was lost", parent_run_id: null });
    expect((await send("GET", `/threads/${run.thread_id}/runs/${run.run_id}`)).body.status).toBe("error");
  });

  it("leaves one trace of a run that continues, whose open steps end when the run ends", async () => {
    const first = await start();
    const run = await newRun({ assistant_id: "slow", input: { steps: ["in"], door: null } });
    const before = await until("the open step is stored", async () => {
      const { body } = await readTrace(run.run_id);
      const children: Wire[] = await Promise.all(
        (body?.child_run_ids ?? []).map(async (id: string) => (await readTrace(id)).body),
      );
      const open = children.find((child) => child.name === "wait");
      return open && { open, root: body };
    });
    expect([before.root.status, before.open.status]).toEqual(["pending", "pending"]);
    first.child.kill("SIGKILL");
    await first.ended;

    await start();
    const steps = `/threads/${run.thread_id}/state`;
    await until("the run continues", async () => (await send("GET", steps)).body.next?.includes("wait"));
    await until(
      "the second attempt is stored",
      async () => (await readTrace(run.run_id)).body.child_run_ids.length > 2,
    );
    await send("POST", `/threads/${run.thread_id}/runs/${run.run_id}/cancel?wait=1`);
    const root = await until("the trace has ended", async () => {
      const { body } = await readTrace(run.run_id);
      return body.status === "error" && body;
    });
    expect(root).toMatchObject({ error: "cancelled", start_time: before.root.start_time, parent_run_id: null });
    expect(root.extra.metadata.run_attempt).toBe(2);
    expect((await readTrace(before.open.id)).body).toMatchObject({ status: "error", parent_run_id: root.id });
  });
});
