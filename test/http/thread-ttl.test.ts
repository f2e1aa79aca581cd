import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { createProject, type TestProject } from "../support/project.ts";
import { rowsOfThread } from "../support/rows.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";
import { Scenario, type Wire } from "./scenario.ts";

/** 60 ms. */
const SHORT = 0.001;
const GRAPH = `
import { setTimeout as pause } from "node:timers/promises";
import { Annotation, DeltaChannel, START, StateGraph } from "@langchain/langgraph";
const State = Annotation.Root({ steps: Annotation({ reducer: (a, b) => [...a, ...b], default: () => [] }), pause_ms: Annotation });
export const graph = new StateGraph(State)
  .addNode("a", async ({ pause_ms = 0 }) => { await pause(pause_ms); return { steps: ["a"] }; })
  .addNode("b", () => ({ steps: ["b"] }))
  .addEdge(START, "a").addEdge("a", "b").compile();

/** Stores only the changes of its state, and all of it with every snapshot. */
const delta = (snapshotFrequency) => {
  const append = (value, updates) => value.concat(...updates);
  const channel = () => new DeltaChannel(append, { snapshotFrequency, initialValueFactory: () => [] });
  return new StateGraph(Annotation.Root({ steps: channel }))
    .addNode("a", () => ({ steps: ["a"] }))
    .addNode("b", () => ({ steps: ["b"] }))
    .addEdge(START, "a").addEdge("a", "b").compile();
};
export const delta_without_snapshot = delta(100);
export const delta_with_snapshots = delta(3);
`;

const GRAPHS = Object.fromEntries(
  ["graph", "delta_without_snapshot", "delta_with_snapshots"].map((name) => [
    name === "graph" ? "agent" : name,
    `./agent.mjs:${name}`,
  ]),
);

const projectWith = (ttl: object): TestProject => {
  const langgraph = { graphs: GRAPHS, checkpointer: { ttl } };
  return createProject({ "agent.mjs": GRAPH, "langgraph.json": JSON.stringify(langgraph) });
};

describe.each(databases)("the time to live of threads on %s", (database) => {
  let api: Scenario;
  let project: TestProject;
  beforeAll(async () => {
    project = projectWith({ sweep_interval_minutes: 0.002 });
    api = await Scenario.start(database, {}, { config: project.config });
  });
  afterAll(async () => {
    await api.stop();
    project.drop();
  });

  const newThread = async (ttl?: object): Promise<string> => (await api.post("/threads", { ttl })).thread_id;
  const run = (thread_id: string, input: object = {}): Promise<Wire> =>
    api.post(`/threads/${thread_id}/runs/wait`, { assistant_id: "agent", input });
  const status = async (path: string): Promise<number> => (await api.send("GET", path)).status;
  const rowsOf = async (thread_id: string): Promise<number> =>
    Object.values(await rowsOfThread(api.service.database, thread_id)).flat().length;
  const history = (thread_id: string): Promise<Wire[]> => api.get(`/threads/${thread_id}/history?limit=100`);

  it("begins again with the rollback of a run, even if it had passed meanwhile", async () => {
    const thread_id = await newThread({ ttl: 0.01 });
    const began = Date.now();
    await api.newRun(thread_id, { assistant_id: "agent", input: {}, after_seconds: 60 });
    await until("the time has passed", async () => Date.now() - began > 700);
    const body = { assistant_id: "agent", input: {}, multitask_strategy: "rollback" };
    const next = await api.send("POST", `/threads/${thread_id}/runs`, body);
    expect(next.status).toBe(200);
    expect((await api.join(next.body)).steps).toEqual(["a", "b"]);
  });

  it("is shown on request and counts from the last update", async () => {
    const thread_id = await newThread({ ttl: 30, strategy: "keep_latest" });
    const thread: Wire = await api.get(`/threads/${thread_id}?include=ttl`);
    const expires_at = new Date(Date.parse(thread.updated_at) + 1_800_000).toISOString();
    expect(thread.ttl).toMatchObject({ strategy: "keep_latest", ttl_minutes: 30 });
    expect(Date.parse(thread.ttl.expires_at)).toBe(Date.parse(expires_at));
    expect(await api.get(`/threads/${thread_id}`)).not.toHaveProperty("ttl");
    await api.send("PATCH", `/threads/${thread_id}`, { ttl: { ttl: 0.5 } });
    const patched: Wire = await api.get(`/threads/${thread_id}?include=ttl`);
    expect(patched.ttl).toMatchObject({ strategy: "delete", ttl_minutes: 0.5 });
    expect((await api.get(`/threads/${await newThread()}?include=ttl`)).ttl).toBeNull();
  });

  it("deletes the thread with its runs, which are unreadable before the sweep", async () => {
    const thread_id = await newThread({ ttl: 60 });
    await run(thread_id);
    const [{ run_id }] = await api.get(`/threads/${thread_id}/runs`);
    await api.send("PATCH", `/threads/${thread_id}`, { ttl: { ttl: SHORT } });
    await until("the thread is expired", async () => (await status(`/threads/${thread_id}`)) === 404);
    for (const path of ["", "/state", "/history", "/runs", `/runs/${run_id}`, `/runs/${run_id}/join`, "/storage"])
      expect([path, await status(`/threads/${thread_id}${path}`)]).toEqual([path, 404]);
    expect(await api.post("/threads/search", { ids: [thread_id] })).toEqual([]);
    await until("the rows are deleted", async () => (await rowsOf(thread_id)) === 0);
  });

  it("hides a run that was read before the deletion of its thread", async () => {
    const thread_id = await newThread();
    await run(thread_id);
    const [{ run_id }] = await api.get(`/threads/${thread_id}/runs`);
    const storage = openOn(api.service.database);
    // What a request reads whose first statement precedes the deletion and whose second follows it.
    await storage.write((tx) => tx.run(tx.k.deleteFrom("threads").where("thread_id", "=", thread_id).compile()));
    await storage.close();
    expect(await status(`/threads/${thread_id}/runs/${run_id}`)).toBe(404);
  });

  it("deletes other threads even if the deletion of one fails, which is tried again", async () => {
    const [kept, other] = [await newThread({ ttl: 60 }), await newThread({ ttl: 60 })];
    const storage = openOn(api.service.database);
    const execute = (text: string) => storage.write((tx) => tx.run(sql.raw(text).compile(tx.k)));
    await execute("create table keepers (thread_id text not null references threads (thread_id))");
    await execute(`insert into keepers (thread_id) values ('${kept}')`);
    // The thread that cannot be deleted comes first, because it is longer expired.
    await execute(`update threads set updated_at = updated_at - 3700000 where thread_id = '${kept}'`);
    await execute(`update threads set updated_at = updated_at - 3650000 where thread_id = '${other}'`);
    await until("the rows of the other one are deleted", async () => (await rowsOf(other)) === 0);
    expect(await rowsOf(kept)).toBeGreaterThan(0);
    await execute("drop table keepers");
    await storage.close();
    await until("the rows are deleted", async () => (await rowsOf(kept)) === 0);
  });

  it("leaves the id to a new thread", async () => {
    const thread_id = randomUUID();
    await api.post("/threads", { thread_id, metadata: { n: 1 }, ttl: { ttl: SHORT } });
    await until("the thread is expired", async () => (await status(`/threads/${thread_id}`)) === 404);
    expect(await api.post("/threads", { thread_id, metadata: { n: 2 } })).toMatchObject({ metadata: { n: 2 } });
  });

  it("does not end while a run is active", async () => {
    const thread_id = await newThread();
    const body = { assistant_id: "agent", input: { pause_ms: 500 } };
    const { run_id }: Wire = await api.post(`/threads/${thread_id}/runs`, body);
    await api.send("PATCH", `/threads/${thread_id}`, { ttl: { ttl: SHORT } });
    expect((await api.get(`/threads/${thread_id}/runs/${run_id}/join`)).steps).toEqual(["a", "b"]);
    await until("the rows are deleted", async () => (await rowsOf(thread_id)) === 0);
  });

  it("with keep_latest keeps the newest checkpoint after each run", async () => {
    const thread_id = await newThread({ ttl: SHORT, strategy: "keep_latest" });
    for (const steps of [
      ["a", "b"],
      ["a", "b", "a", "b"],
    ]) {
      expect((await run(thread_id)).steps).toEqual(steps);
      await until("only one checkpoint is left", async () => (await history(thread_id)).length === 1);
      const [left] = await history(thread_id);
      expect(left).toMatchObject({ values: { steps }, next: [], parent_checkpoint: null });
    }
  });

  it.each([
    ["a strategy that does not exist", { ttl: 1, strategy: "forget" }],
    ["no time", { strategy: "delete" }],
    ["no time at all", { ttl: 0 }],
    ["more than 100 years", { ttl: 1e9 }],
  ])("is refused with %s", async (_, ttl) => {
    expect((await api.send("POST", "/threads", { ttl })).status).toBe(422);
  });

  describe("pruning", () => {
    const prune = (body: object): Promise<Wire> => api.post("/threads/prune", body);

    it("deletes threads, stops their runs, and skips those that do not exist", async () => {
      const [one, two, kept] = [await newThread(), await newThread(), await newThread()];
      await api.post(`/threads/${one}/runs`, { assistant_id: "agent", input: { pause_ms: 60_000 } });
      expect(await prune({ thread_ids: [one, two, two, randomUUID()] })).toEqual({ pruned_count: 2 });
      for (const thread_id of [one, two]) expect(await rowsOf(thread_id)).toBe(0);
      expect(await status(`/threads/${kept}`)).toBe(200);
    });

    it("keeps the newest checkpoints with keep_latest, and skips threads with active runs", async () => {
      const [ended, busy] = [await newThread(), await newThread()];
      await run(ended);
      await run(ended);
      await run(busy);
      const { run_id }: Wire = await api.post(`/threads/${busy}/runs`, {
        assistant_id: "agent",
        input: { pause_ms: 60_000 },
      });
      const before: Wire = await api.get(`/threads/${ended}/storage`);
      expect(await prune({ thread_ids: [ended, busy], strategy: "keep_latest" })).toEqual({ pruned_count: 1 });
      expect(await history(ended)).toMatchObject([{ values: { steps: ["a", "b", "a", "b"] } }]);
      const after: Wire = await api.get(`/threads/${ended}/storage`);
      expect(after.checkpoints.count).toBe(1);
      expect(after.total_bytes).toBeLessThan(before.total_bytes);
      expect((await run(ended)).steps).toHaveLength(6);
      await api.send("POST", `/threads/${busy}/runs/${run_id}/cancel?wait=true`);
    });
  });

  describe.each(["delta_without_snapshot", "delta_with_snapshots"])("the ancestors of a DeltaChannel (%s)", (graph) => {
    const runDelta = (thread_id: string): Promise<Wire> =>
      api.post(`/threads/${thread_id}/runs/wait`, { assistant_id: graph, input: {} });
    const checkpoints = async (thread_id: string): Promise<number> =>
      (await api.get(`/threads/${thread_id}/storage`)).checkpoints.count;
    const RUNS = 4;
    const steps = Array(RUNS).fill(["a", "b"]).flat();

    const expectComplete = async (thread_id: string) => {
      expect((await api.get(`/threads/${thread_id}/state`)).values).toEqual({ steps });
      expect((await api.get(`/threads/${thread_id}`)).values).toEqual({ steps });
      expect((await runDelta(thread_id)).steps).toEqual([...steps, "a", "b"]);
    };

    it("are kept by a prune with keep_latest back to the last snapshot, and its state is complete", async () => {
      const thread_id = await newThread();
      for (let n = 0; n < RUNS; n++) await runDelta(thread_id);
      const before = await checkpoints(thread_id);
      await api.post("/threads/prune", { thread_ids: [thread_id], strategy: "keep_latest" });
      const after = await checkpoints(thread_id);
      if (graph === "delta_without_snapshot") expect(after).toBe(before);
      else expect(after).toBeLessThan(before / 2);
      await expectComplete(thread_id);
    });

    it("are kept by the sweep with keep_latest, and its state is complete", async () => {
      const thread_id = await newThread();
      for (let n = 0; n < RUNS; n++) await runDelta(thread_id);
      await api.send("PATCH", `/threads/${thread_id}`, { ttl: { ttl: SHORT, strategy: "keep_latest" } });
      await until("the thread is pruned", async () => {
        const storage = openOn(api.service.database);
        const query = sql<{ pruned: number }>`select pruned from threads where thread_id = ${thread_id}`;
        const row = await storage.read.first(query.compile(storage.read.k));
        await storage.close();
        return row?.pruned === 1;
      });
      await expectComplete(thread_id);
    });
  });

  it("reports the storage of a thread by kind", async () => {
    const thread_id = await newThread();
    await run(thread_id);
    const { checkpoints, channel_values, ...sizes }: Wire = await api.get(`/threads/${thread_id}/storage`);
    expect(checkpoints).toEqual({ count: 4, bytes: expect.any(Number) });
    expect(channel_values.by_channel.steps.versions).toBeGreaterThan(1);
    const parts = checkpoints.bytes + channel_values.bytes + sizes.pending_writes.bytes;
    expect(sizes).toMatchObject({ thread_id, total_bytes: parts });
  });
});

it("the time to live of langgraph.json is that of new threads, including those that runs create", async () => {
  const project = projectWith({ strategy: "keep_latest", default_ttl: 90 });
  const api = await Scenario.start("sqlite", {}, { config: project.config });
  try {
    const created: Wire = await api.post("/threads", {});
    const thread_id = randomUUID();
    const body = { assistant_id: "agent", input: {}, if_not_exists: "create" };
    await api.post(`/threads/${thread_id}/runs/wait`, body);
    for (const id of [created.thread_id, thread_id])
      expect((await api.get(`/threads/${id}?include=ttl`)).ttl).toMatchObject({
        strategy: "keep_latest",
        ttl_minutes: 90,
      });
  } finally {
    await api.stop();
    project.drop();
  }
});
