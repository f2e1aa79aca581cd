import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RunOverview } from "../../src/agent-server/runs/run-overview.ts";
import { DEFAULT_TENANT } from "../../src/platform/contract/caller.ts";
import { databases } from "../support/databases.ts";
import { type EndedRun, insertEndedRuns } from "../support/rows.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";
import { ADMIN, closedService, newCaller, newWorkspace } from "./callers.ts";
import { Scenario, UNKNOWN_ID, type Wire } from "./scenario.ts";

const RUNS = "/app/api/runs";
const LATER = { assistant_id: "chain", input: { steps: ["in"] }, after_seconds: 3600 };
const AT_ONCE = { ...LATER, after_seconds: 0 };

describe.each(databases)("the runs of a workspace on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  const list = async (query = ""): Promise<Wire[]> => (await api.get(`${RUNS}?${query}`)).runs;
  const idsOf = (runs: Wire[]) => runs.map(({ run_id }) => run_id);

  it("are listed across all threads, newest first, with their times", async () => {
    const ended = await api.newRun(await api.newThread(), AT_ONCE);
    await api.join(ended);
    const running = await api.runningSlow(await api.newThread());
    const waiting = await api.newRun(await api.newThread(), LATER);
    const runs = await list();
    expect(idsOf(runs)).toEqual([waiting.run_id, running.run_id, ended.run_id]);
    expect(runs[2]).toEqual({
      run_id: ended.run_id,
      thread_id: ended.thread_id,
      assistant_id: ended.assistant_id,
      graph_id: "chain",
      status: "success",
      multitask_strategy: "enqueue",
      is_stateless: false,
      attempt: 1,
      stopping: null,
      cancel_reason: null,
      error: null,
      created_at: ended.created_at,
      start_at: ended.created_at,
      started_at: expect.stringMatching(/T/),
      ended_at: expect.stringMatching(/T/),
    });
    expect(runs[1]).toMatchObject({ status: "running", started_at: expect.stringMatching(/T/), ended_at: null });
    expect(runs[0]).toMatchObject({ status: "pending", started_at: null, ended_at: null });
    expect(Date.parse(runs[0].start_at) - Date.parse(runs[0].created_at)).toBe(3_600_000);
    await api.cancel(running);
  });

  it("are filtered by status, thread, assistant, id and time", async () => {
    const thread_id = await api.newThread();
    const first = await api.newRun(thread_id, AT_ONCE);
    await api.join(first);
    const second = await api.newRun(thread_id, LATER);
    const here = `thread_id=${thread_id}`;
    expect(idsOf(await list(here))).toEqual([second.run_id, first.run_id]);
    expect(idsOf(await list(`${here}&status=success`))).toEqual([first.run_id]);
    expect(idsOf(await list(`${here}&status=success&status=pending`))).toEqual([second.run_id, first.run_id]);
    expect(idsOf(await list(`${here}&status=error`))).toEqual([]);
    expect(idsOf(await list(`${here}&assistant_id=${first.assistant_id}`))).toEqual([second.run_id, first.run_id]);
    expect(idsOf(await list(`${here}&assistant_id=${first.run_id}`))).toEqual([]);
    expect(idsOf(await list(`run_id=${first.run_id}`))).toEqual([first.run_id]);
    const at = (name: string) => `${here}&${name}=${encodeURIComponent(second.created_at)}`;
    expect(idsOf(await list(at("created_from")))).toEqual([second.run_id]);
    expect(idsOf(await list(at("created_until")))).toEqual([first.run_id]);
  });

  it("are listed in pages, each once, while others are accepted", async () => {
    const thread_id = await api.newThread();
    const runs = [];
    for (let i = 0; i < 5; i++) runs.push(await api.newRun(thread_id, LATER));
    const seen: string[] = [];
    for (let next: string | null = ""; next !== null; ) {
      const page: Wire = await api.get(`${RUNS}?thread_id=${thread_id}&limit=2${next && `&cursor=${next}`}`);
      seen.push(...idsOf(page.runs));
      next = page.next;
      await api.newRun(thread_id, LATER);
    }
    expect(seen).toEqual(idsOf(runs.reverse()));
  });

  it("are searched a limited number of rows at a time", async () => {
    const thread_id = await api.newThread();
    const { assistant_id } = await api.newRun(thread_id, LATER);
    for (let i = 0; i < 4; i++) await api.newRun(await api.newThread(), LATER);
    const storage = openOn(api.service.database);
    const overview = new RunOverview({ database: storage }, 3);
    const caller = { tenant_id: DEFAULT_TENANT, user_id: "local", scopes: [] };
    const found = [];
    for (let cursor: string | undefined; found.length < 2; ) {
      const page = await overview.list(caller, { thread_id, cursor, limit: 10 });
      found.push(page.runs.length);
      cursor = page.next ?? undefined;
    }
    expect(found).toEqual([0, 1]);
    expect((await overview.list(caller, { assistant_id, limit: 2 })).runs).toHaveLength(2);
    await storage.close();
  });

  it("show why they failed, and that a cancel was requested", async () => {
    const failed = await api.newRun(await api.newThread(), { assistant_id: "fails", input: { steps: ["in"] } });
    await api.join(failed);
    expect((await list(`run_id=${failed.run_id}`))[0]).toMatchObject({
      status: "error",
      error: { error: expect.stringMatching(/\w/), message: expect.stringMatching(/\w/) },
    });
    const stopped = await api.runningSlow(await api.newThread());
    await api.cancel(stopped, "?wait=1&reason=enough");
    expect((await list(`run_id=${stopped.run_id}`))[0]).toMatchObject({
      status: "interrupted",
      stopping: null,
      cancel_reason: "enough",
    });
  });

  it("have previews of their inputs and outputs, except of large ones", async () => {
    const ended = async (body: object, thread_id?: string): Promise<Wire> => {
      const run = await api.newRun(thread_id ?? (await api.newThread()), body);
      await api.join(run);
      return run;
    };
    const question = { role: "user", content: "Where is my order?" };
    const asked = await ended({ assistant_id: "talk", input: { topic: "orders", messages: [question] } });
    const long = await ended({ ...AT_ONCE, input: { steps: ["y".repeat(1_000)] } });
    const large = await ended({ ...AT_ONCE, input: { steps: ["x".repeat(200_000)] } });
    const failed = await ended({ assistant_id: "fails", input: { steps: ["in"] } });
    const paused = await ended({ assistant_id: "gate", input: { steps: [] } });
    const resumed = await ended({ assistant_id: "gate", command: { resume: "Approved" } }, paused.thread_id);
    const running = await api.runningSlow(await api.newThread());
    const runs = [asked, long, large, failed, resumed, running];
    const query = [...idsOf(runs), UNKNOWN_ID].map((id) => `run_id=${id}`).join("&");
    const { previews } = await api.get(`${RUNS}/previews?${query}`);
    const of = (run: Wire) => previews.find(({ run_id }: Wire) => run_id === run.run_id);
    expect(previews).toHaveLength(runs.length);
    expect(of(asked)).toEqual({ run_id: asked.run_id, input: "Where is my order?", output: "yes" });
    expect(of(long)).toMatchObject({
      input: expect.stringMatching(/^\{"steps":\["y{189}…$/),
      output: expect.stringMatching(/^\{"steps":\["y{189}…$/),
    });
    expect(of(large)).toMatchObject({ input: null, output: null });
    expect(of(failed)).toMatchObject({ input: '{"steps":["in"]}', output: null });
    expect(of(resumed)).toMatchObject({ input: "Approved" });
    expect(of(running)).toMatchObject({ input: expect.stringContaining("in"), output: null });
    await api.cancel(running);
    const status = async (ids: string[]) =>
      (await api.send("GET", `${RUNS}/previews?${ids.map((id) => `run_id=${id}`).join("&")}`)).status;
    const many = Array.from({ length: 50 }, () => randomUUID());
    expect([await status(many), await status([...many, randomUUID()]), await status([])]).toEqual([200, 422, 422]);
  });

  it.each([
    "status=done",
    "cursor=1",
    "limit=0",
    "limit=501",
    "created_from=yesterday",
    "ended_until=1",
    "thread_id=mine",
  ])("are refused for %s", async (query) => {
    expect((await api.send("GET", `${RUNS}?${query}`)).status).toBe(422);
  });
});

describe.each(databases)("the throughput of a workspace on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await closedService(database);
  });
  afterAll(() => api.stop());

  const throughput = async (caller: Record<string, string>) =>
    (await api.call("GET", `${RUNS}/stats`, undefined, caller)).minutes as Wire[];
  const total = (minutes: Wire[], name: string) => minutes.reduce((sum, minute) => sum + minute[name], 0);

  it("is counted by minute for the last hour, without that of other workspaces", async () => {
    const caller = await newCaller(api);
    const newRun = async (body: object) => {
      const { thread_id } = await api.call("POST", "/threads", {}, caller);
      return api.call("POST", `/threads/${thread_id}/runs`, body, caller);
    };
    const one = await newRun(AT_ONCE);
    await newRun(LATER);
    const cancelled = await newRun(LATER);
    const slow = await newRun({ assistant_id: "slow", input: { steps: ["in"], door: null } });
    const of = (run: Wire) => `/threads/${run.thread_id}/runs/${run.run_id}`;
    await api.call("POST", `${of(cancelled)}/cancel`, undefined, caller);
    await api.call("GET", `${of(one)}/join`, undefined, caller);
    await until("one runs, one waits", async () => {
      const last = (await throughput(caller)).at(-1);
      return last.running === 1 && last.waiting === 1;
    });
    const minutes = await throughput(caller);
    expect(minutes).toHaveLength(60);
    const steps = minutes.slice(1).map(({ at }, i) => Date.parse(at) - Date.parse(minutes[i].at));
    expect(new Set(steps)).toEqual(new Set([60_000]));
    expect(["accepted", "started", "ended"].map((name) => total(minutes, name))).toEqual([4, 2, 2]);
    expect(minutes[0]).toMatchObject({ accepted: 0, waiting: 0, running: 0 });

    const stranger = await newCaller(api, { tenant_id: await newWorkspace(api) });
    expect(total(await throughput(stranger), "accepted")).toBe(0);
    expect((await api.call("GET", RUNS, undefined, stranger)).runs).toEqual([]);
    expect((await api.call("GET", `${RUNS}?run_id=${one.run_id}`, undefined, stranger)).runs).toEqual([]);
    const previews = (as: Record<string, string>) =>
      api.call("GET", `${RUNS}/previews?run_id=${one.run_id}`, undefined, as);
    expect((await previews(stranger)).previews).toEqual([]);
    expect((await previews(caller)).previews).toMatchObject([{ input: '{"steps":["in"]}' }]);

    await api.call("POST", `${of(slow)}/cancel?wait=1&action=rollback`, undefined, caller);
    expect(total(await throughput(caller), "accepted")).toBe(3);
    expect((await api.send("GET", RUNS)).status).toBe(401);
    expect((await api.send("GET", RUNS, undefined, ADMIN)).status).toBe(200);
  });
});

describe.each(databases)("the monitoring of a workspace on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await closedService(database);
  });
  afterAll(() => api.stop());

  const MINUTE = 60_000;
  const NUMBERS = { duration_p50_ms: null, duration_p99_ms: null, queue_p50_ms: null, queue_p99_ms: null };
  const monitoring = (caller: Record<string, string>, query = "range=1h") =>
    api.call("GET", `${RUNS}/monitoring?${query}`, undefined, caller);

  /** A workspace in which one assistant ended five runs ten minutes ago and one a minute later, and another one run two days ago. */
  async function workspace() {
    const tenant_id = await newWorkspace(api);
    const [busy, idle] = [randomUUID(), randomUUID()];
    const at = (Math.floor(Date.now() / MINUTE) - 10) * MINUTE;
    const run = (queue_ms: number, duration_ms: number, more: Partial<EndedRun> = {}): EndedRun => {
      const { assistant_id = busy, status = "success", ended_at = at + 1 } = more;
      const started_at = ended_at - duration_ms;
      const created_at = started_at - queue_ms;
      return { tenant_id, thread_id: randomUUID(), assistant_id, status, created_at, started_at, ended_at, ...more };
    };
    const storage = openOn(api.service.database);
    await insertEndedRuns(storage, [
      run(10, 1_000),
      run(20, 3_000, { status: "error" }),
      run(30, 2_000, { status: "timeout" }),
      run(40, 4_000, { status: "interrupted" }),
      run(1_000, 100_000, { ended_at: at + MINUTE - 1 }),
      // Cancelled before its start.
      run(0, 0, { ended_at: at + MINUTE, started_at: null, status: "interrupted" }),
      run(0, 7, { ended_at: at - 2 * 24 * 60 * MINUTE, assistant_id: idle }),
    ]);
    const caller = await newCaller(api, { tenant_id });
    return { tenant_id, caller, busy, idle, at, storage, run };
  }

  const FIVE = {
    runs: 5,
    errors: 2,
    duration_p50_ms: 3_000,
    // Of 1, 2, 3, 4 and 100 s: rank 3.96 of 0 to 4.
    duration_p99_ms: expect.closeTo(96_160, 6),
    queue_p50_ms: 30,
    queue_p99_ms: expect.closeTo(961.6, 6),
  };

  it("has the numbers, durations and queue times of ended runs by assistant and time", async () => {
    const { caller, busy, idle, at, storage } = await workspace();
    await storage.close();
    const hour = await monitoring(caller);
    expect(hour).toMatchObject({ bucket_ms: MINUTE, incomplete_until: null });
    expect(Date.parse(hour.until) - Date.parse(hour.from)).toBe(60 * MINUTE);
    const buckets = [
      { at: expect.any(String), ...FIVE },
      { at: expect.any(String), runs: 1, errors: 0, ...NUMBERS },
    ];
    expect(hour.total).toEqual({ ...FIVE, runs: 6, buckets });
    expect(hour.total.buckets.map((bucket: Wire) => Date.parse(bucket.at))).toEqual([at, at + MINUTE]);
    expect(hour.assistants).toEqual([{ assistant_id: busy, ...hour.total }]);

    const week = await monitoring(caller, "range=7d");
    expect(week.total.runs).toBe(7);
    expect(week.assistants.map((each: Wire) => [each.assistant_id, each.runs])).toEqual([
      [busy, 6],
      [idle, 1],
    ]);
    const own = await monitoring(caller, `range=7d&assistant_id=${idle}`);
    expect(own.total).toMatchObject({ runs: 1, errors: 0, duration_p50_ms: 7, duration_p99_ms: 7, queue_p50_ms: 0 });
    expect(own.assistants).toEqual([{ assistant_id: idle, ...own.total }]);
    const sizes = [];
    for (const range of ["1h", "6h", "24h", "7d", "30d"]) {
      const { from, until, bucket_ms, total } = await monitoring(caller, `range=${range}`);
      sizes.push((Date.parse(until) - Date.parse(from)) / bucket_ms);
      expect(Date.parse(from) % bucket_ms).toBe(0);
      expect(total.buckets.reduce((sum: number, { runs }: Wire) => sum + runs, 0)).toBe(total.runs);
    }
    expect(sizes).toEqual([60, 72, 72, 84, 90]);
  });

  it("does not count the wait for the start of a scheduled run", async () => {
    const { caller, storage, run } = await workspace();
    const scheduled = run(3_600_000, 5, { assistant_id: randomUUID() });
    await insertEndedRuns(storage, [{ ...scheduled, start_at: (scheduled.started_at as number) - 50 }]);
    await storage.close();
    const { total } = await monitoring(caller, `assistant_id=${scheduled.assistant_id}`);
    expect(total).toMatchObject({ runs: 1, queue_p50_ms: 50, queue_p99_ms: 50 });
  });

  it("leads to the runs of a bucket", async () => {
    const { tenant_id, caller, at, storage } = await workspace();
    const time = (name: string, ms: number) => `${name}=${new Date(ms).toISOString()}`;
    const ended = async (query: string) =>
      (await api.call("GET", `${RUNS}?${query}`, undefined, caller)).runs.map(({ status }: Wire) => status).sort();
    const bucket = `${time("ended_from", at)}&${time("ended_until", at + MINUTE)}`;
    expect(await ended(bucket)).toEqual(["error", "interrupted", "success", "success", "timeout"]);
    expect(await ended(`${bucket}&status=error&status=timeout`)).toEqual(["error", "timeout"]);
    expect(await ended(`${bucket}&status=running`)).toEqual([]);
    expect(await ended(time("ended_from", at + MINUTE))).toEqual(["interrupted"]);
    expect(await ended(`${bucket}&${time("created_until", at - 40_000)}`)).toEqual(["success"]);
    expect(await ended(`${bucket}&${time("created_from", at + 1)}`)).toEqual([]);
    expect(await ended(time("ended_until", at - 3 * 24 * 60 * MINUTE))).toEqual([]);
    // The runs that were created before those of the bucket are not scanned.
    const user = { tenant_id, user_id: "local", scopes: [] };
    const last = await new RunOverview({ database: storage }, 3).list(user, { ended_from: at + MINUTE, limit: 10 });
    expect([last.runs.length, last.next]).toEqual([1, null]);
    await storage.close();
  });

  it("counts so many runs, the last ones that ended, and says so", async () => {
    const { tenant_id, at, storage } = await workspace();
    const caller = { tenant_id, user_id: "local", scopes: [] };
    const overview = new RunOverview({ database: storage }, undefined, 2);
    const { total, incomplete_until } = await overview.monitoring(caller, { range: "1h" });
    expect([total.runs, Date.parse(incomplete_until as string)]).toEqual([2, at + MINUTE - 1]);
    await storage.close();
  });

  it("shows nothing of other workspaces", async () => {
    const { busy } = await workspace();
    const stranger = await newCaller(api, { tenant_id: await newWorkspace(api) });
    for (const query of ["range=30d", `range=30d&assistant_id=${busy}`])
      expect(await monitoring(stranger, query)).toMatchObject({ total: { runs: 0, buckets: [] }, assistants: [] });
    expect((await api.send("GET", `${RUNS}/monitoring`)).status).toBe(401);
  });

  it.each(["range=2h", "assistant_id=mine"])("is refused for %s", async (query) => {
    expect((await api.send("GET", `${RUNS}/monitoring?${query}`, undefined, ADMIN)).status).toBe(422);
  });
});
