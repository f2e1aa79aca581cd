import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { sql } from "kysely";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { violations } from "../crash/invariants.ts";
import { databases } from "../support/databases.ts";
import { EndedEarly, type ServerProcess } from "../support/process.ts";
import { createProject } from "../support/project.ts";
import type { SseEvent } from "../support/sse.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";
import { LEASE_MS, sharing } from "./sharing.ts";
import { type Created, create, pathOf, pidsOf, read } from "./steps.ts";

const CONFIG = "test/graphs/shared/langgraph.json";

describe.each(databases)("two processes on one database (%s)", (name) => {
  const shared = sharing(name);
  const start = (env?: Record<string, string>): Promise<ServerProcess> => shared.start(CONFIG, env);
  const { gate } = shared;
  const open = (file: string) => writeFileSync(gate(file), "");
  const row = async ({ run_id }: Created): Promise<{ attempt: number; status: string }> => {
    const storage = openOn(shared.database());
    const query = sql<{ attempt: number; status: string }>`select attempt, status from runs where run_id = ${run_id}`;
    const [found] = await storage.read.all(query.compile(storage.read.k) as never);
    await storage.close();
    return found as never;
  };

  /** A run that A executes as B was not there yet, in its second step, and all its events as B tells them. */
  const executingAtFirst = async (env?: Record<string, string>, gates: Record<string, string> = {}) => {
    const a = await start(env);
    const run = await create(a, { gates: { b: gate("go"), ...gates } });
    await read(a, run).until((events) => events.some(({ data }) => data.step === "b"));
    const b = await start();
    return { a, b, run, stream: read(b, run) };
  };

  it("show and stream runs that another process has started", async () => {
    const [a, b] = [await start(), await start()];
    const run = await create(a, { gates: { b: gate("go") } });
    const stream = read(b, run);
    await stream.until((events) => events.some(({ data }) => data.step === "b"));
    expect(await (await fetch(`${b.url}${pathOf(run)}`)).json()).toMatchObject({ status: "running" });

    open("go");
    const events = await stream.rest();
    expect(events.map(({ id }) => id)).toEqual(events.map((_, i) => String(i + 1)));
    expect(events).toEqual(await read(a, run).rest());
    // On Postgres either may be the first to hear of it.
    const pids = await pidsOf(b, run);
    expect([a.child.pid, b.child.pid]).toContain(pids[0]);
    expect(pids).toEqual([pids[0], pids[0], pids[0]]);
  });

  it("stream runs that another process executes, with all events", async () => {
    const a = await start({ N_JOBS_PER_WORKER: "1" });
    const blocked = await create(a, { gates: { a: gate("later") } });
    const b = await start();
    // The only place at A is taken.
    const run = await create(a, { gates: { b: gate("go") } });
    const stream = read(a, run);
    await stream.until((events) => events.some(({ data }) => data.step === "b"));
    open("go");

    const events = await stream.rest();
    expect(events.map(({ id }) => id)).toEqual(events.map((_, i) => String(i + 1)));
    expect(events).toEqual(await read(b, run).rest());
    expect(await pidsOf(a, run)).toEqual([b.child.pid, b.child.pid, b.child.pid]);
    open("later");
    await pidsOf(a, blocked);
  });

  it("cancel runs that another process executes, within a heartbeat", async () => {
    const [a, b] = [await start(), await start()];
    const run = await create(b, { gates: { a: gate("never") } });
    await read(b, run).until((events) => events.some(({ data }) => data.step === "a"));

    const asked_at = performance.now();
    const cancelled = await fetch(`${a.url}${pathOf(run)}/cancel?wait=true`, { method: "POST" });
    expect(cancelled.status).toBe(204);
    expect(performance.now() - asked_at).toBeLessThan(2_000);
    expect(await (await fetch(`${a.url}${pathOf(run)}`)).json()).toMatchObject({ status: "interrupted" });
  });

  it("take over the runs of a stopped process, with every event and without counting an attempt", async () => {
    const env = { BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: "0" };
    const { a, b, run, stream } = await executingAtFirst(env, { c: gate("later") });

    a.child.kill("SIGTERM");
    await until("A takes no more requests", () =>
      fetch(`${a.url}/ok`).then(
        () => false,
        () => true,
      ),
    );
    // The step in which it is ends at A. The next begins at B, or begins at A, if A's host hears late of the stop, and again at B.
    open("go");
    await stream.until((events) => events.some(({ data }) => data.step === "c" && data.pid === b.child.pid));
    open("later");
    const events = await stream.rest();
    await a.ended;

    expect(events.map(({ id }) => id)).toEqual(events.map((_, i) => String(i + 1)));
    const pids = await pidsOf(b, run);
    expect(pids).toHaveLength(3);
    expect(pids.at(-1)).toBe(b.child.pid);
    expect(await row(run)).toEqual({ attempt: 1, status: "success" });
  });

  it("continue within a lease and a second after a kill of one, and its runs end on the other", async () => {
    const { a, b, run, stream } = await executingAtFirst();

    a.child.kill("SIGKILL");
    const killed_at = performance.now();
    await stream.until((events) => events.some(({ data }) => data.step === "b" && data.pid === b.child.pid));
    expect(performance.now() - killed_at).toBeLessThan(LEASE_MS + 1_500);

    open("go");
    const events = await stream.rest();
    expect(events.map(({ id }) => id)).toEqual(events.map((_, i) => String(i + 1)));
    expect(await pidsOf(b, run)).toEqual([a.child.pid, b.child.pid, b.child.pid]);
    expect(await row(run)).toEqual({ attempt: 2, status: "success" });
  });

  it("execute nothing of a cancelled run that its process returns to the queue", async () => {
    const log = gate("log");
    // On SQLite, A does not learn of the cancel.
    const a = await start({
      THREADMILL_HEARTBEAT: "60s",
      THREADMILL_LEASE: "180s",
      THREADMILL_CANCEL_GRACE: "60s",
      BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: "0",
    });
    const run = await create(a, { gates: { b: gate("never") }, log, ignores_abort: true });
    await read(a, run).until((events) => events.some(({ data }) => data.step === "b"));
    const b = await start();
    expect((await fetch(`${b.url}${pathOf(run)}/cancel`, { method: "POST" })).status).toBe(202);
    a.child.kill("SIGTERM");
    await a.ended;
    await read(b, run).rest();
    expect(await row(run)).toMatchObject({ status: "interrupted" });
    expect(readFileSync(log, "utf8").match(/begins/g)).toHaveLength(2);
  });

  it("rescue runs while the graph of a cancelled one hangs", async () => {
    const [opens, asked, steps] = [gate("opens"), gate("asked"), resolve("test/graphs/shared/steps.ts")];
    const project = createProject({
      "langgraph.json": JSON.stringify({ graphs: { steps: `${steps}:steps`, lazy: "./lazy.ts:lazy" } }),
      "lazy.ts": `import { existsSync, writeFileSync } from "node:fs"; import { steps } from ${JSON.stringify(steps)};
        export function lazy() {
          if (existsSync(${JSON.stringify(opens)})) return steps;
          writeFileSync(${JSON.stringify(asked)} + process.pid, "");
          return new Promise(() => {});
        }`,
    });
    open("opens");
    const executing = async (graph: string) => {
      const server = await shared.start(project.config, { N_JOBS_PER_WORKER: "1", THREADMILL_CANCEL_GRACE: "60s" });
      const run = await create(server, { gates: { b: gate("go") }, ignores_abort: true }, randomUUID(), graph);
      await read(server, run).until((events) => events.some(({ data }) => data.step === "b"));
      return { server, run };
    };
    const [first, second] = [await executing("lazy"), await executing("steps")];
    const b = await shared.start(project.config);
    rmSync(opens);
    expect((await fetch(`${b.url}${pathOf(first.run)}/cancel`, { method: "POST" })).status).toBe(202);
    first.server.child.kill("SIGKILL");
    await until("its state is asked for", async () => existsSync(`${asked}${b.child.pid}`));
    second.server.child.kill("SIGKILL");
    const killed_at = performance.now();
    open("go");
    expect(await pidsOf(b, second.run)).toHaveLength(3);
    expect(performance.now() - killed_at).toBeLessThan(LEASE_MS + 20_000);
    expect((await row(first.run)).status).toBe("running");
  });

  it("continue a run that was resumed by the IDs of its interrupts, with the answers", async () => {
    const a = await start();
    const first = await create(a, { gates: { left: gate("left"), right: gate("right") } }, randomUUID(), "asks");
    await read(a, first).rest();
    const { interrupts } = (await (await fetch(`${a.url}/threads/${first.thread_id}/state`)).json()) as {
      interrupts: { id: string; value: string }[];
    };
    const resume = Object.fromEntries(interrupts.map(({ id, value }) => [id, `${value}!`]));
    const answer = await fetch(`${a.url}/threads/${first.thread_id}/runs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ assistant_id: "asks", command: { resume }, stream_mode: ["custom", "updates"] }),
    });
    const run = (await answer.json()) as Created;
    await read(a, run).until((events) => events.some(({ data }) => data.answer === "right!"));
    open("left");
    // The left branch has ended, and its answer is stored.
    await read(a, run).until((events) => events.some(({ data }) => data.left));
    const b = await start();
    a.child.kill("SIGKILL");
    await a.ended;
    open("right");
    expect(await (await fetch(`${b.url}${pathOf(run)}/join`)).json()).toMatchObject({ answers: ["left!", "right!"] });
    expect((await row(run)).status).toBe("success");
  });

  it("execute one run of a thread at a time, in whichever of them", async () => {
    const [a, b] = [await start(), await start()];
    const thread_id = randomUUID();
    const log = gate("log");
    const runs = [await create(a, { log }, thread_id)];
    for (let i = 0; i < 20; i++) runs.push(await create(i % 2 ? a : b, { log }, thread_id));
    for (const run of runs) await pidsOf(a, run);

    const lines = readFileSync(log, "utf8").trim().split("\n");
    const expected = runs.flatMap(({ run_id }) =>
      Array.from({ length: 3 }, () => [`begins ${run_id}`, `ends ${run_id}`]).flat(),
    );
    expect(lines).toEqual(expected);
  });

  it("start at the same time on a new database, and keep its rules under load", async () => {
    const [a, b] = await Promise.all([start(), start()]);
    const creations = Array.from({ length: 60 }, (_, i) => create(i % 2 ? a : b, {}));
    const runs = await Promise.all(creations);
    for (const run of runs) expect(await pidsOf(b, run)).toHaveLength(3);
    for (const { child, ended } of [a, b]) {
      child.kill("SIGTERM");
      await ended;
    }
    const storage = openOn(shared.database());
    expect(await violations(storage.read)).toEqual([]);
    await storage.close();
  });
});

describe.runIf(databases.includes("postgres"))("two processes that receive no hints of each other (postgres)", () => {
  const shared = sharing("postgres");
  // With a schema in its URL, a process has another channel for notifications.
  const start = (schema?: string): Promise<ServerProcess> => {
    const url = new URL(shared.database().url as string);
    if (schema) url.searchParams.set("options", `-c search_path=${schema}`);
    return shared.start(CONFIG, {}, ["--only", "agents"], url.href);
  };

  it("pass on events within half a second and cancels within 1.5 s", async () => {
    const a = await start();
    const run = await create(a, { gates: { b: shared.gate("go"), c: shared.gate("never") } });
    await read(a, run).until((events) => events.some(({ data }) => data.step === "b"));
    const b = await start("public");
    const stream = read(b, run);
    await stream.until((events) => events.some(({ data }) => data.step === "b"));

    const hasBegunC = (events: SseEvent[]) => events.some(({ data }) => data.step === "c");
    writeFileSync(shared.gate("go"), "");
    await read(a, run).until(hasBegunC);
    const begun_at = performance.now();
    await stream.until(hasBegunC);
    expect(performance.now() - begun_at).toBeLessThan(500);

    const asked_at = performance.now();
    const cancelled = await fetch(`${b.url}${pathOf(run)}/cancel?wait=true`, { method: "POST" });
    expect(cancelled.status).toBe(204);
    expect(performance.now() - asked_at).toBeLessThan(1_500);
    const events = await stream.rest();
    expect(events.map(({ id }) => id)).toEqual(events.map((_, i) => String(i + 1)));
    expect(await (await fetch(`${b.url}${pathOf(run)}`)).json()).toMatchObject({ status: "interrupted" });
  });
});

describe.runIf(databases.includes("postgres"))("a process that stops (postgres)", () => {
  const shared = sharing("postgres");

  it("breaks off the requests that wait for runs of other processes, so that clients repeat them there", async () => {
    const a = await shared.start(CONFIG);
    const run = await create(a, { gates: { b: shared.gate("go") } });
    await read(a, run).until((events) => events.some(({ data }) => data.step === "b"));
    const b = await shared.start(CONFIG);
    const joined = await fetch(`${b.url}${pathOf(run)}/join`);
    expect(joined.status).toBe(200);
    const body = expect(joined.text()).rejects.toThrow();

    // B does not close its database before this request has ended.
    const lock = new pg.Client({ connectionString: shared.database().url });
    await lock.connect();
    try {
      await lock.query("begin; lock table crons in access exclusive mode");
      void fetch(`${b.url}/runs/crons/search`, { method: "POST", body: "{}" }).catch(() => undefined);
      const waiting = "select from pg_locks where not granted";
      await until("the request waits", async () => (await lock.query(waiting)).rowCount !== 0);
      b.child.kill("SIGTERM");
      await body;
    } finally {
      await lock.end();
    }
    await b.ended;

    writeFileSync(shared.gate("go"), "");
    expect(await pidsOf(a, run)).toEqual([a.child.pid, a.child.pid, a.child.pid]);
  });
});

describe("a data folder", () => {
  const shared = sharing("sqlite");
  const start = (...flags: string[]) => shared.start(CONFIG, { THREADMILL_LEASE: "60000ms" }, flags);

  it("that is shared is refused to a process that needs it exclusively", async () => {
    await start("--share-data");
    await expect(start()).rejects.toThrow(/is in use\. It was last opened by process \d+\./);
  });

  it("that one process holds exclusively is refused to processes that share", async () => {
    await start();
    await expect(start("--share-data")).rejects.toThrow(EndedEarly);
  });

  it("returns runs to the queue immediately if no other process shares it", async () => {
    const gate = shared.gate("go");
    const first = await start("--share-data");
    const run = await create(first, { gates: { b: gate } });
    await read(first, run).until((events) => events.some(({ data }) => data.step === "b"));
    first.child.kill("SIGKILL");
    await first.ended;
    writeFileSync(gate, "");

    const second = await start("--share-data");
    const up_at = performance.now();
    await fetch(`${second.url}${pathOf(run)}/join`);
    // Its lease would have lasted a minute.
    expect(performance.now() - up_at).toBeLessThan(5_000);
  });

  it("has a different number for each process that opens it", async () => {
    const opened = Array.from({ length: 5 }, () => openOn(shared.database()));
    expect(new Set(opened.map(({ worker_id }) => worker_id)).size).toBe(5);
    for (const storage of opened) await storage.close();
  });
});
