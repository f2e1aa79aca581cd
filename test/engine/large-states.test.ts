import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createDatabase, type TestDatabase } from "../support/databases.ts";
import { freePort, type ServerProcess, startProcess } from "../support/process.ts";

/** Of the time of the whole answer: nine tenths before, a seventh now, on a machine of any speed. */
const FIRST_BYTE_PART = 1 / 3;
/** A page, its copies in both threads and what V8 has not collected yet, beside 190 MB of a service that has done nothing. */
const MEMORY_MB = 600;

describe("a thread whose state is 5 MB", () => {
  let database: TestDatabase;
  let server: ServerProcess;
  beforeEach(async () => {
    database = await createDatabase("sqlite");
    server = await start();
  });
  afterEach(async () => {
    server.child.kill("SIGKILL");
    await server.ended;
    await database.drop();
  });
  const start = async () =>
    startProcess({
      data: database.data_dir,
      port: await freePort(),
      config: "test/graphs/large/langgraph.json",
      env: { THREADMILL_HOSTS: "1" },
    });
  const post = (path: string, body: object) =>
    fetch(server.url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const run = async (changes: boolean): Promise<string> => {
    const { thread_id } = (await (await post("/threads", {})).json()) as { thread_id: string };
    const answer = await post(`/threads/${thread_id}/runs/wait`, { assistant_id: "large", input: { changes } });
    expect(((await answer.json()) as { step: number }).step).toBe(20);
    return thread_id;
  };

  it("has a history that is sent while it is read", async () => {
    const thread_id = await run(true);
    server.child.kill("SIGTERM");
    await server.ended;
    server = await start();
    // Starts the host that reads.
    await (await fetch(`${server.url}/threads/${thread_id}/state`)).text();
    const asked_at = performance.now();
    const answer = await post(`/threads/${thread_id}/history`, { limit: 100 });
    expect(answer.status).toBe(200);
    const first_byte_ms = performance.now() - asked_at;
    const states = (await answer.json()) as { values: { step: number; value: string } }[];
    expect(first_byte_ms).toBeLessThan((performance.now() - asked_at) * FIRST_BYTE_PART);
    expect(states.map(({ values }) => values.step)).toEqual([...Array.from({ length: 20 }, (_, i) => 20 - i), 0, 0]);
    for (const { step, value } of states.slice(0, 20).map(({ values }) => values))
      expect([value.length, value.startsWith(`${step - 1} `)]).toEqual([5e6, true]);
    const [, peak] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.child.pid}/status`, "utf8")) ?? [];
    expect(Number(peak) / 1024).toBeLessThan(MEMORY_MB);
  });

  it("stores a value that did not change once", async () => {
    await run(false);
    server.child.kill("SIGTERM");
    await server.ended;
    // The write of its step, the value, the run's output and the thread's record: 25 MB. Stored in each step it is 200.
    expect(statSync(join(database.data_dir, "threadmill.db")).size).toBeLessThan(50e6);
  });
});
