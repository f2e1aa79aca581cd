import { randomUUID } from "node:crypto";
import { type RawBuilder, sql } from "kysely";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createLog, type Log } from "../../src/platform/lib/log.ts";
import { databases } from "../support/databases.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";
import { ADMIN, closedService, newCaller } from "./callers.ts";
import { Scenario, UNKNOWN_ID, type Wire } from "./scenario.ts";

/** Half an hour from now, so that no tick comes by itself during the tests. */
const MINUTE = String((new Date().getUTCMinutes() + 30) % 60).padStart(2, "0");
const HOURLY = { assistant_id: "chain", schedule: `${MINUTE} * * * *`, input: { steps: ["in"] } };

/** Sets the next tick of a cron to a time in the past, by an expression of SQL. */
const setTick = async (api: Scenario, cron_id: string, tick: RawBuilder<unknown>) => {
  const storage = openOn(api.service.database);
  await storage.write((tx) => tx.run(sql`update crons set next_at = ${tick} where cron_id = ${cron_id}`.compile(tx.k)));
  await storage.close();
};

/** The tick of a minute cron that is one to two minutes late. The tick after it is less than a minute late. */
const MISSED_MINUTE = sql`(now_ms() / 60000) * 60000 - 60000`;

/** Waits, if less than 8 s of this minute are left: its end would make the tick after MISSED_MINUTE a missed one, too. */
const untilMinuteLasts = () => until("8 s of a minute are left", async () => Date.now() % 60_000 < 52_000);

/** Returns a log that collects its warnings. */
const collecting = (): { log: Log; warnings: Wire[] } => {
  const warnings: Wire[] = [];
  const warn = (fields: object, message: string) => warnings.push({ ...fields, message });
  return { warnings, log: Object.assign(createLog("silent"), { warn }) as never };
};

describe.each(databases)("crons on %s", (database) => {
  let api: Scenario;
  const { log, warnings } = collecting();
  beforeAll(async () => {
    api = await Scenario.start(database, {}, { log });
  });
  afterAll(() => api.stop());

  const create = (body: object = {}, thread_id?: string): Promise<Wire> =>
    api.post(thread_id ? `/threads/${thread_id}/runs/crons` : "/runs/crons", { ...HOURLY, ...body });
  const get = (cron_id: string) => api.get(`/runs/crons/${cron_id}`);
  const patch = (cron_id: string, body: object) => api.call("PATCH", `/runs/crons/${cron_id}`, body);

  /** Makes a cron due, and wakes the scheduler with a change of another cron. */
  const makeDue = async (cron_id: string, tick: RawBuilder<unknown> = sql`now_ms() - 1000`) => {
    await setTick(api, cron_id, tick);
    await create({ enabled: false });
  };
  const threadsOf = ({ cron_id }: Wire): Promise<Wire[]> => api.post("/threads/search", { metadata: { cron_id } });
  const runsOf = async (thread_id: string): Promise<Wire[]> => api.get(`/threads/${thread_id}/runs`);
  const hasMoved = (cron_id: string) =>
    until(
      "the cron has moved to its next tick",
      async () => Date.parse((await get(cron_id)).next_run_date) > Date.now(),
    );

  it("have the fields of the official record", async () => {
    const cron = await create({ timezone: "Europe/Berlin", metadata: { team: "a" }, end_time: "2999-01-01T00:00:00Z" });
    expect(cron).toEqual({
      cron_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      assistant_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      thread_id: null,
      on_run_completed: "delete",
      end_time: "2999-01-01T00:00:00.000+00:00",
      schedule: HOURLY.schedule,
      timezone: "Europe/Berlin",
      created_at: expect.any(String),
      updated_at: expect.any(String),
      user_id: "local",
      payload: expect.objectContaining({ assistant_id: "chain", input: { steps: ["in"] } }),
      next_run_date: expect.stringMatching(new RegExp(`:${MINUTE}:00\\.000\\+00:00$`)),
      metadata: { team: "a" },
      enabled: true,
    });
    expect(await get(cron.cron_id)).toEqual(cron);
  });

  it("create a run at a tick, with their input, on a thread that remains if it is to be kept", async () => {
    const cron = await create({ on_run_completed: "keep", metadata: { source: "cron" } });
    await makeDue(cron.cron_id);
    const thread = await until("there is a thread", async () => (await threadsOf(cron))[0]);
    const [run] = await runsOf(thread.thread_id);
    expect((await api.join(run)).steps).toEqual(["in", "a", "b", "c"]);
    expect(run).toMatchObject({ metadata: { cron_id: cron.cron_id, source: "cron" }, assistant_id: cron.assistant_id });
    await hasMoved(cron.cron_id);
    expect(await threadsOf(cron)).toHaveLength(1);
  });

  it("leave no thread behind by default", async () => {
    const cron = await create();
    await makeDue(cron.cron_id);
    await hasMoved(cron.cron_id);
    expect(await threadsOf(cron)).toEqual([]);
  });

  it("add runs to their thread, by its strategy for concurrent runs", async () => {
    const thread_id = await api.newThread();
    const door = api.newDoor();
    const running = await api.runningSlow(thread_id, door.path);
    const interrupting = await create({ assistant_id: "chain", multitask_strategy: "interrupt" }, thread_id);
    await makeDue(interrupting.cron_id);
    await until("its run has ended", async () => {
      const runs = await runsOf(thread_id);
      return runs.some(({ metadata, status }) => metadata.cron_id === interrupting.cron_id && status === "success");
    });
    expect((await api.run(running)).status).toBe("interrupted");
    expect(interrupting).toMatchObject({ thread_id, on_run_completed: null });
  });

  it("skip a tick at which their thread is busy, if their strategy is to reject", async () => {
    const thread_id = await api.newThread();
    const door = api.newDoor();
    const running = await api.runningSlow(thread_id, door.path);
    const cron = await create({ multitask_strategy: "reject" }, thread_id);
    await makeDue(cron.cron_id);
    await hasMoved(cron.cron_id);
    door.open();
    await api.join(running);
    expect(await runsOf(thread_id)).toHaveLength(1);
  });

  it("skip ticks that are more than a minute late, and log it", async () => {
    const cron = await create({ on_run_completed: "keep" });
    await makeDue(cron.cron_id, sql`now_ms() - 61000`);
    await hasMoved(cron.cron_id);
    expect(await threadsOf(cron)).toEqual([]);
    expect(warnings).toContainEqual({
      message: "cron tick missed",
      cron_id: cron.cron_id,
      tick: expect.stringMatching(/Z$/),
      delay_ms: expect.toSatisfy((ms) => ms >= 61_000),
      next_tick: expect.stringMatching(new RegExp(`:${MINUTE}:00\\.000Z$`)),
    });
  });

  it("do not skip the tick after a missed one if it is less than a minute late", async () => {
    await untilMinuteLasts();
    const cron = await create({ schedule: "* * * * *", on_run_completed: "keep" });
    await makeDue(cron.cron_id, MISSED_MINUTE);
    await hasMoved(cron.cron_id);
    expect(await threadsOf(cron)).toHaveLength(1);
    expect(warnings.filter(({ cron_id }) => cron_id === cron.cron_id)).toHaveLength(1);
  });

  it("create the run of a due tick after a change of other fields", async () => {
    const cron = await create({ on_run_completed: "keep" });
    await setTick(api, cron.cron_id, sql`now_ms() - 1000`);
    await patch(cron.cron_id, { metadata: { a: 1 }, enabled: true });
    await hasMoved(cron.cron_id);
    expect(await threadsOf(cron)).toHaveLength(1);
  });

  it.runIf(database === "postgres")("create a run late if their thread was locked at the tick", async () => {
    const thread_id = await api.newThread();
    const cron = await create({}, thread_id);
    const other = new pg.Client({ connectionString: api.service.database.url });
    await other.connect();
    await other.query("begin");
    await other.query("select from threads where thread_id = $1 for update", [thread_id]);
    await makeDue(cron.cron_id);
    const ofCron = (warning: Wire) => warning.cron_id === cron.cron_id;
    await until("the run is delayed", async () => warnings.some(ofCron));
    await other.end();
    await hasMoved(cron.cron_id);
    expect(await runsOf(thread_id)).toHaveLength(1);
    expect(warnings.filter(ofCron)).toMatchObject([{ message: expect.stringMatching("cron run delayed") }]);
  });

  it("are disabled if their time zone is unknown, while others create their runs", async () => {
    const [broken, other] = [await create(), await create({ on_run_completed: "keep" })];
    const storage = openOn(api.service.database);
    await storage.write((tx) =>
      tx.run(
        sql`update crons set timezone = 'Atlantis/Poseidonis', next_at = 1 where cron_id = ${broken.cron_id}`.compile(
          tx.k,
        ),
      ),
    );
    await storage.close();
    await makeDue(other.cron_id);
    await hasMoved(other.cron_id);
    await until("the cron is disabled", async () => !(await get(broken.cron_id)).enabled);
    expect(await get(broken.cron_id)).toMatchObject({ next_run_date: null, timezone: "Atlantis/Poseidonis" });
    expect(await threadsOf(other)).toHaveLength(1);
    await expect(patch(broken.cron_id, { enabled: true })).rejects.toThrow('422: {"detail":"body.timezone: must be');
    expect(await patch(broken.cron_id, { enabled: true, timezone: "Europe/Berlin" })).toMatchObject({ enabled: true });
  });

  it("create no runs while they are disabled, and continue with the next tick when they are enabled", async () => {
    const cron = await create({ enabled: false });
    expect(cron.next_run_date).toBeNull();
    expect((await patch(cron.cron_id, { enabled: true })).next_run_date).not.toBeNull();
    expect((await patch(cron.cron_id, { enabled: false })).next_run_date).toBeNull();
  });

  it("end at their end time, which null removes", async () => {
    const cron = await create({ end_time: new Date(Date.now() + 1_000).toISOString(), schedule: "0 0 1 1 *" });
    expect(cron.next_run_date).toBeNull();
    expect((await patch(cron.cron_id, { end_time: null })).next_run_date).not.toBeNull();
    // Without an offset, as the Python client sends it: UTC.
    expect((await patch(cron.cron_id, { end_time: "2999-01-01T00:00:00" })).end_time).toBe(
      "2999-01-01T00:00:00.000+00:00",
    );
  });

  it("are changed field by field", async () => {
    const cron = await create({ metadata: { a: 1, b: 2 } });
    const changed = await patch(cron.cron_id, {
      schedule: "30 6 * * *",
      metadata: { b: 3 },
      input: { steps: ["new"] },
    });
    expect(changed).toMatchObject({ schedule: "30 6 * * *", metadata: { a: 1, b: 3 }, timezone: null });
    expect(changed.payload).toMatchObject({ input: { steps: ["new"] }, assistant_id: "chain" });
    expect(changed.next_run_date).toMatch(/T06:30:00/);
  });

  it("keep the fields that an update does not contain, or contains as null", async () => {
    const payload = {
      config: { configurable: { model: "large" } },
      context: { user: "ada" },
      stream_mode: ["updates"],
      stream_subgraphs: true,
      stream_resumable: true,
      multitask_strategy: "interrupt",
      durability: "exit",
      interrupt_before: ["b"],
    };
    const cron = await create({ ...payload, timezone: "Europe/Berlin" });
    const nulls = Object.fromEntries(Object.keys(payload).map((name) => [name, null]));
    for (const body of [{ enabled: false }, {}, { ...nulls, timezone: null, metadata: null, schedule: null }]) {
      const changed = await patch(cron.cron_id, body);
      expect(changed.payload).toEqual(cron.payload);
      expect(changed).toMatchObject({ timezone: "Europe/Berlin", metadata: {}, schedule: HOURLY.schedule });
    }
    const changed = await patch(cron.cron_id, { stream_mode: "values", config: {} });
    expect(changed.payload).toEqual({ ...cron.payload, stream_mode: ["values"], config: {} });
  });

  it("are found and counted by assistant, thread, state and metadata", async () => {
    const thread_id = await api.newThread();
    const team = randomUUID();
    const on_thread = await create({ metadata: { team } }, thread_id);
    const disabled = await create({ metadata: { team }, enabled: false });
    const search = async (body: object) =>
      (await api.post("/runs/crons/search", { metadata: { team }, ...body })).map(({ cron_id }: Wire) => cron_id);
    expect(await search({})).toEqual([disabled.cron_id, on_thread.cron_id]);
    expect(await search({ thread_id })).toEqual([on_thread.cron_id]);
    expect(await search({ enabled: false })).toEqual([disabled.cron_id]);
    expect(await search({ assistant_id: "chain", sort_by: "next_run_date", sort_order: "asc" })).toEqual([
      on_thread.cron_id,
      disabled.cron_id,
    ]);
    expect(await search({ assistant_id: "slow" })).toEqual([]);
    expect(await search({ assistant_id: null, thread_id: null, enabled: null, limit: 1, offset: 1 })).toHaveLength(1);
    expect(await api.post("/runs/crons/count", { metadata: { team } })).toBe(2);
    const pages = await Promise.all(
      [0, 1, 2].map((offset) => api.send("POST", "/runs/crons/search", { metadata: { team }, limit: 1, offset })),
    );
    expect(pages.map(({ headers }) => headers.get("x-pagination-next"))).toEqual(["1", "2", null]);
    expect(pages.map(({ headers }) => headers.get("x-pagination-total"))).toEqual(["2", "3", "2"]);
    expect(await api.post("/runs/crons/search", { metadata: { team }, limit: 1, select: ["cron_id"] })).toEqual([
      { cron_id: disabled.cron_id },
    ]);
  });

  it("are deleted with their thread and with their assistant", async () => {
    const thread_id = await api.newThread();
    const on_thread = await create({}, thread_id);
    await api.send("DELETE", `/threads/${thread_id}`);
    const { assistant_id } = await api.post("/assistants", { graph_id: "chain" });
    const of_assistant = await create({ assistant_id });
    await api.send("DELETE", `/assistants/${assistant_id}`);
    const single = await create();
    expect(await api.call("DELETE", `/runs/crons/${single.cron_id}`)).toEqual({});
    for (const { cron_id } of [on_thread, of_assistant, single])
      expect(await api.send("GET", `/runs/crons/${cron_id}`)).toMatchObject({ status: 404 });
  });

  it.each<[string, object, string]>([
    ["no schedule", { schedule: undefined }, "schedule"],
    ["too few fields", { schedule: "* * *" }, "five fields"],
    ["seconds", { schedule: "* * * * * *" }, "five fields"],
    ["a value out of range", { schedule: "61 * * * *" }, "minute"],
    ["a date that does not exist", { schedule: "0 0 30 2 *" }, "no date in the future"],
    ["a date instead of fields", { schedule: "2030-01-01T00:00:00" }, "five fields"],
    ["an unknown time zone", { timezone: "Mars/Olympus" }, "IANA"],
    ["an end time that is none", { end_time: "soon" }, "end_time"],
    ["a long schedule", { schedule: `${"1,".repeat(200)}1 * * * *` }, "schedule"],
  ])("are refused with %s", async (_, body, reason) => {
    const answer = await api.send("POST", "/runs/crons", { ...HOURLY, ...body });
    expect([answer.status, answer.body.detail]).toEqual([422, expect.stringContaining(reason)]);
  });

  it("need an assistant and a thread that exist", async () => {
    expect(await api.send("POST", "/runs/crons", { ...HOURLY, assistant_id: UNKNOWN_ID })).toMatchObject({
      status: 404,
    });
    expect(await api.send("POST", `/threads/${UNKNOWN_ID}/runs/crons`, HOURLY)).toMatchObject({ status: 404 });
  });
});

describe.each(databases)("missed ticks with THREADMILL_CRON_MISSED=last on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database, { THREADMILL_CRON_MISSED: "last" });
  });
  afterAll(() => api.stop());

  const fire = async (schedule: string, tick: RawBuilder<unknown>): Promise<Wire[]> => {
    const body = { ...HOURLY, schedule, on_run_completed: "keep" };
    const { cron_id } = await api.post("/runs/crons", body);
    await setTick(api, cron_id, tick);
    await api.post("/runs/crons", { ...body, enabled: false });
    const next = async () => Date.parse((await api.get(`/runs/crons/${cron_id}`)).next_run_date);
    await until("the cron has moved to its next tick", async () => (await next()) > Date.now());
    return api.post("/threads/search", { metadata: { cron_id } });
  };

  it("create one run for all of them", async () => {
    expect(await fire(HOURLY.schedule, sql`now_ms() - 18000000`)).toHaveLength(1);
  });

  it("create another run for the tick after them that is less than a minute late", async () => {
    await untilMinuteLasts();
    expect(await fire("* * * * *", MISSED_MINUTE)).toHaveLength(2);
  });
});

describe.each(databases)("users of crons on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await closedService(database);
  });
  afterAll(() => api.stop());

  const users = () =>
    Promise.all([
      newCaller(api, { user_id: "ada", scopes: ["agents", "tokens"] }),
      newCaller(api, { user_id: "bob", scopes: ["agents"] }),
    ]);
  const body = { assistant_id: "inspect", input: {}, schedule: "0 0 1 1 *", on_run_completed: "keep" };

  /** The user in the config of a run that the cron creates. */
  const userOfRun = async (cron_id: string): Promise<string> => {
    await setTick(api, cron_id, sql`now_ms() - 1000`);
    await api.call("POST", "/runs/crons", { ...body, enabled: false }, ADMIN);
    const search = () => api.call("POST", "/threads/search", { metadata: { cron_id } }, ADMIN);
    const thread = await until("the run has ended", async () => (await search()).find(({ values }: Wire) => values));
    return thread.values.seen.configurable.user_id;
  };

  it.each<[string, object]>([
    ["input", { input: { steps: [] } }],
    ["config", { config: { configurable: { model: "other" } } }],
    ["context", { context: { a: 1 } }],
    ["webhook", { webhook: "https://hooks.invalid" }],
    ["metadata", { metadata: { a: 1 } }],
    ["interrupts", { interrupt_before: [] }],
  ])("become the user who changes the %s of the runs", async (_, change) => {
    const [ada, bob] = await users();
    const cron = await api.call("POST", "/runs/crons", body, ada);
    expect(cron.user_id).toBe("ada");
    expect((await api.call("PATCH", `/runs/crons/${cron.cron_id}`, change, bob)).user_id).toBe("bob");
    const storage = openOn(api.service.database);
    const query = sql<Wire>`select user_id, scopes from crons where cron_id = ${cron.cron_id}`;
    expect(await storage.read.all(query.compile(storage.read.k))).toEqual([{ user_id: "bob", scopes: '["agents"]' }]);
    await storage.close();
  });

  it("run as the user who changed them last", async () => {
    const [ada, bob] = await users();
    const { cron_id } = await api.call("POST", "/runs/crons", body, ada);
    await api.call("PATCH", `/runs/crons/${cron_id}`, { config: { configurable: { topic: "bob" } } }, bob);
    expect(await userOfRun(cron_id)).toBe("bob");
  });

  it("stay the same if only the times change, or nothing", async () => {
    const [ada, bob] = await users();
    const { cron_id } = await api.call("POST", "/runs/crons", { ...body, metadata: { a: { b: 1 } } }, ada);
    for (const change of [
      { enabled: false },
      { enabled: true, schedule: "0 0 2 1 *", timezone: "Europe/Berlin", end_time: null },
      { input: {}, metadata: { a: { b: 1 } } },
    ])
      expect((await api.call("PATCH", `/runs/crons/${cron_id}`, change, bob)).user_id).toBe("ada");
    expect(await userOfRun(cron_id)).toBe("ada");
  });
});
