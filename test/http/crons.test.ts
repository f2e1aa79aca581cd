import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";
import { Scenario, UNKNOWN_ID, type Wire } from "./scenario.ts";

const HOURLY = { assistant_id: "chain", schedule: "0 * * * *", input: { steps: ["in"] } };

describe.each(databases)("crons on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  const create = (body: object = {}, thread_id?: string): Promise<Wire> =>
    api.post(thread_id ? `/threads/${thread_id}/runs/crons` : "/runs/crons", { ...HOURLY, ...body });
  const get = (cron_id: string) => api.get(`/runs/crons/${cron_id}`);
  const patch = (cron_id: string, body: object) => api.call("PATCH", `/runs/crons/${cron_id}`, body);

  /** Sets the next tick of a cron to a time in the past, and wakes the scheduler with a change of another cron. */
  const makeDue = async (cron_id: string, late_ms = 1_000) => {
    const storage = openOn(api.service.database);
    await storage.write((tx) =>
      tx.run(sql`update crons set next_at = now_ms() - ${late_ms} where cron_id = ${cron_id}`.compile(tx.k)),
    );
    await storage.close();
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
      schedule: "0 * * * *",
      timezone: "Europe/Berlin",
      created_at: expect.any(String),
      updated_at: expect.any(String),
      user_id: "local",
      payload: expect.objectContaining({ assistant_id: "chain", input: { steps: ["in"] } }),
      next_run_date: expect.stringMatching(/:00:00\.000\+00:00$/),
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

  it("skip ticks that are more than a minute late", async () => {
    const cron = await create({ on_run_completed: "keep" });
    await makeDue(cron.cron_id, 61_000);
    await hasMoved(cron.cron_id);
    expect(await threadsOf(cron)).toEqual([]);
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

  it("create no runs while they are disabled, and go on with the next tick when they are enabled", async () => {
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
