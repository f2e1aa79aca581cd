import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import pg from "pg";
import { afterEach, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { execute } from "../support/postgres.ts";
import type { ServerProcess } from "../support/process.ts";
import { startProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";
import { LEASE_MS, sharing } from "./sharing.ts";
import { create, pathOf, pidsOf, read } from "./steps.ts";

const CONFIG = "test/graphs/shared/langgraph.json";
/** A process that is frozen or cut off has lost its runs after its lease and this. */
const MARGIN_MS = 1_000;
/** ... and for the test to see it: two steps, on a busy machine. */
const SEEN_MS = 1_000;

/** Each fault as it was found: with the guard off these wait for minutes, or end runs that nothing is wrong with. */
describe.runIf(databases.includes("postgres"))("when Postgres or a process misbehaves", () => {
  const shared = sharing("postgres");
  const start = (env?: Record<string, string>, database_url?: string) =>
    shared.start(CONFIG, env, ["--only", "agents"], database_url);
  const url = () => shared.database().url as string;
  let closing: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closing.reverse()) await close();
    closing = [];
  });
  const proxied = async (): Promise<TcpProxy> => {
    const proxy = await startProxy(url());
    closing.push(() => proxy.close());
    return proxy;
  };

  /** Runs that a process executes as the other is not there yet, and that wait in their second step. */
  const executing = async (server: ServerProcess, count: number) => {
    const runs = [];
    for (let i = 0; i < count; i++) runs.push(await create(server, { gates: { b: shared.gate("go") } }));
    for (const run of runs) await read(server, run).until((events) => events.some(({ data }) => data.step === "b"));
    return runs;
  };
  const secondStepsAt = async (server: ServerProcess, runs: Awaited<ReturnType<typeof executing>>) => {
    for (const run of runs)
      await read(server, run).until((events) =>
        events.some(({ data }) => data.step === "b" && data.pid === server.child.pid),
      );
  };

  it("runs of a frozen process continue in another one within a lease and a second, whatever it has locked", async () => {
    const a = await start();
    const runs = await executing(a, 6);
    const b = await start();
    const [{ worker_id }] = (await execute(url(), "select distinct worker_id from runs")) as [{ worker_id: number }];
    // As if A had been frozen between two statements of a transaction.
    const frozen = new pg.Client({ connectionString: url(), application_name: `threadmill ${worker_id}` });
    frozen.on("error", () => undefined);
    closing.push(() => frozen.end());
    await frozen.connect();
    await frozen.query("begin");
    await frozen.query("select from threads where thread_id = $1 for update", [runs[0]?.thread_id]);
    await frozen.query("select from runs where run_id = $1 for update", [runs[1]?.run_id]);

    a.child.kill("SIGSTOP");
    const frozen_at = performance.now();
    await secondStepsAt(b, runs);
    expect(performance.now() - frozen_at).toBeLessThan(LEASE_MS + MARGIN_MS + SEEN_MS);
    writeFileSync(shared.gate("go"), "");
    for (const run of runs) expect(await pidsOf(b, run)).toEqual([a.child.pid, b.child.pid, b.child.pid]);
  });

  it("a process whose connections are all taken keeps its runs", async () => {
    const a = await start();
    const runs = await executing(a, 3);
    const b = await start();
    const other = new pg.Client({ connectionString: url() });
    closing.push(() => other.end());
    await other.connect();
    await other.query("begin");
    await other.query("lock table assistants in access exclusive mode");
    // More than A has connections; each waits for the lock as long as the server lets it, which is two leases.
    const asked = Array.from({ length: 30 }, () => fetch(`${a.url}/assistants/${randomUUID()}`));
    expect(new Set((await Promise.all(asked)).map(({ status }) => status))).toEqual(new Set([503]));
    await other.query("rollback");
    writeFileSync(shared.gate("go"), "");
    const { pid } = a.child;
    for (const run of runs) expect(await pidsOf(b, run)).toEqual([pid, pid, pid]);
  });

  it("a process stops in time although a row that it needs is locked", async () => {
    const a = await start({ BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: "0.1" });
    const [run] = await executing(a, 1);
    const other = new pg.Client({ connectionString: url() });
    closing.push(() => other.end());
    await other.connect();
    await other.query("begin");
    await other.query("select from runs where run_id = $1 for update", [run?.run_id]);
    a.child.kill("SIGTERM");
    const asked_at = performance.now();
    await a.ended;
    expect(performance.now() - asked_at).toBeLessThan(15_000);
  });

  it("a process whose packets are dropped reports it within 5 s, and other processes take over its runs", async () => {
    const proxy = await proxied();
    const a = await start({}, proxy.url);
    const runs = await executing(a, 3);
    const b = await start();

    proxy.carries(false);
    const cut_at = performance.now();
    const asked = await fetch(`${a.url}/threads/search`, { method: "POST", body: "{}" });
    expect([asked.status, asked.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(await asked.text()).not.toMatch(/terminated|timeout|ECONN/i);
    expect(performance.now() - cut_at).toBeLessThan(5_000);
    expect((await fetch(`${a.url}/ok`)).status).toBe(503);
    await secondStepsAt(b, runs);
    expect(performance.now() - cut_at).toBeLessThan(LEASE_MS + MARGIN_MS + SEEN_MS);

    // It comes back by itself.
    proxy.carries(true);
    await until("A answers again", async () => (await fetch(`${a.url}/ok?check_db=1`)).status === 200, 5_000);
    writeFileSync(shared.gate("go"), "");
    for (const run of runs) expect((await pidsOf(a, run)).slice(1)).toEqual([b.child.pid, b.child.pid]);
  });

  it("a process that has lost its database for good exits on SIGTERM", async () => {
    const proxy = await proxied();
    const a = await start({ BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: "0.1" }, proxy.url);
    await executing(a, 2);
    proxy.carries(false);
    a.child.kill("SIGTERM");
    const asked_at = performance.now();
    await a.ended;
    expect(performance.now() - asked_at).toBeLessThan(20_000);
  });

  it("clients that wait for a run get its result, and no error about the lost database connection", async () => {
    const [proxy, waiting] = [await proxied(), await proxied()];
    const a = await start({}, proxy.url);
    const [run] = await executing(a, 1);
    const b = await start({}, waiting.url);
    const joined = fetch(`${b.url}${pathOf(run as never)}/join`);
    // The status goes out after a second.
    await until("it waits", async () => (await Promise.race([joined, undefined])) !== undefined, 10_000);
    // B asks the database every 200 ms whether the run of A has ended.
    waiting.carries(false);
    await until("B has noticed", async () => (await fetch(`${b.url}/ok`)).status === 503, 10_000);
    waiting.carries(true);
    for (const each of [proxy, waiting]) each.reset();
    writeFileSync(shared.gate("go"), "");
    for (const each of [proxy, waiting]) each.reset();
    expect(await (await joined).json()).toMatchObject({ pids: [a.child.pid, a.child.pid, a.child.pid] });
  });

  it("notifications of others, in any form, have no effect", async () => {
    const a = await start();
    for (const text of [
      "",
      "x {",
      'x {"kind":"error"}',
      "x null",
      'x {"kind":"runs","in_ms":"soon"}',
      'x {"kind":"events"}',
    ])
      await execute(url(), `select pg_notify('threadmill', '${text}')`);
    expect(await pidsOf(a, await create(a, {}))).toEqual([a.child.pid, a.child.pid, a.child.pid]);
  });

  it("a run that its own process claims again is executed once at a time", async () => {
    const a = await start({ THREADMILL_LEASE: "20000ms", THREADMILL_HEARTBEAT: "10000ms" });
    const [log, go] = [shared.gate("log"), shared.gate("go")];
    const run = await create(a, { gates: { b: go }, log });
    await read(a, run).until((events) => events.some(({ data }) => data.step === "b"));
    const begun = () => readFileSync(log, "utf8").match(/begins/g)?.length ?? 0;
    // As the rescue of another process does it, when A has missed its heartbeats; and A is the first to hear of it.
    await execute(url(), "update runs set status = 'pending', epoch = epoch + 1, worker_id = null, lease_until = null");
    await execute(url(), `select pg_notify('threadmill', 'test {"kind":"runs"}')`);
    await until("its step has begun again", async () => begun() === 3);
    writeFileSync(go, "");
    expect(await pidsOf(a, run)).toHaveLength(3);
    expect(readFileSync(log, "utf8").match(/ends/g)).toHaveLength(3);
  });

  it("with too few connections all runs end, none with an attempt lost", async () => {
    const name = `few_${shared.database().url?.split("_").at(-1)}`;
    await execute(url(), `create role ${name} login connection limit 9`);
    closing.push(async () => {
      await execute(url(), `drop owned by ${name}`);
      await execute(url(), `drop role ${name}`);
    });
    await execute(url(), `grant all on schema public to ${name}`);
    await execute(url(), `grant all on all tables in schema public to ${name}`);
    await execute(url(), `grant all on all sequences in schema public to ${name}`);
    const few = new URL(url());
    few.username = name;
    const [a, b, c] = await Promise.all([1, 2, 3].map(() => start({}, few.href)));
    const servers = [a, b, c] as ServerProcess[];
    const creations = Array.from({ length: 150 }, (_, i) => create(servers[i % 3] as ServerProcess, {}));
    const runs = await Promise.all(creations);
    for (const run of runs) expect(await pidsOf(a as ServerProcess, run)).toHaveLength(3);
    const rows = await execute(url(), "select status, attempt, count(*)::int from runs group by 1, 2");
    expect(rows).toEqual([{ status: "success", attempt: 1, count: 150 }]);
  });
});
