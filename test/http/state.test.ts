import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { Scenario, UNKNOWN_ID, type Wire } from "./scenario.ts";

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(Z|\+00:00)$/;

describe.each(databases)("the state of threads on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  /** A thread on which the chain has run once. */
  const chained = async (body: object = {}): Promise<string> => {
    const thread_id = await api.newThread();
    await api.wait(thread_id, { assistant_id: "chain", input: { steps: ["in"] }, ...body });
    return thread_id;
  };

  describe("reading it", () => {
    it("of a thread without a graph answers the empty state, without metadata", async () => {
      const body = await api.state(await api.newThread());
      expect(body).toEqual({
        values: {},
        next: [],
        tasks: [],
        created_at: null,
        checkpoint: null,
        parent_checkpoint: null,
      });
      expect(Object.keys(body)).not.toContain("metadata");
    });

    it("of a thread whose graph has not run yet answers an empty state too", async () => {
      const thread_id = await api.newThread({ metadata: { graph_id: "chain" } });
      expect(await api.state(thread_id)).toMatchObject({
        next: [],
        tasks: [],
        checkpoint: null,
        parent_checkpoint: null,
      });
      expect(await api.history(thread_id)).toEqual([]);
    });

    it("after a run shows values, checkpoints and whose run it was", async () => {
      const thread_id = await chained({ metadata: { colour: "blue" } });
      const [run] = await api.get(`/threads/${thread_id}/runs`);
      const pointer = { thread_id, checkpoint_ns: "", checkpoint_id: expect.any(String) };
      const { assistant_id, graph_id } = await api.get("/assistants/chain");
      const state = await api.state(thread_id);
      expect(state).toMatchObject({
        values: { steps: ["in", "a", "b", "c"] },
        next: [],
        tasks: [],
        metadata: { source: "loop", step: 3, run_id: run.run_id, thread_id, assistant_id, graph_id, colour: "blue" },
        created_at: expect.stringMatching(TIME),
        checkpoint: pointer,
        parent_checkpoint: pointer,
      });
      expect(state.checkpoint.checkpoint_id > state.parent_checkpoint.checkpoint_id).toBe(true);
      expect(JSON.stringify(state)).not.toContain('"__');
    });

    it.each([
      ["select=next&select=values", ["next", "values"], ["in", "a", "b", "c"]],
      ["select=values.steps&select=checkpoint", ["checkpoint", "values"], ["in", "a", "b", "c"]],
      ["select=next", ["next"], undefined],
    ])("with %s returns only these parts", async (query, keys, steps) => {
      const body = await api.get(`/threads/${await chained()}/state?${query}`);
      expect(Object.keys(body).sort()).toEqual(keys);
      expect(body.values?.steps).toEqual(steps);
    });

    it("at each checkpoint returns what the history shows there", async () => {
      const thread_id = await chained();
      for (const past of await api.history(thread_id)) {
        const { checkpoint } = past;
        expect(await api.get(`/threads/${thread_id}/state/${checkpoint.checkpoint_id}`)).toEqual(past);
        expect(await api.post(`/threads/${thread_id}/state/checkpoint`, { checkpoint })).toEqual(past);
      }
    });

    it.each<[string, "GET" | "POST", string, object | undefined]>([
      ["reading it", "GET", "/state/1ef00000-0000-6000-8000-000000000000", undefined],
      ["reading it with a body", "POST", "/state/checkpoint", { checkpoint: { checkpoint_id: "nope" } }],
      ["an update", "POST", "/state", { values: {}, checkpoint_id: "nope" }],
      ["an update by pointer", "POST", "/state", { values: {}, checkpoint: { checkpoint_id: "nope" } }],
    ])("a checkpoint that the thread does not have is 404 for %s", async (_, method, path, body) => {
      const answer = await api.send(method, `/threads/${await chained()}${path}`, body);
      expect(answer).toMatchObject({ status: 404, body: { detail: expect.stringContaining("has no checkpoint") } });
    });
  });

  describe("its history", () => {
    it("of a chain of three has five checkpoints, newest first", async () => {
      const history = await api.history(await chained());
      expect(history.map(({ metadata }) => [metadata.step, metadata.source])).toEqual([
        [3, "loop"],
        [2, "loop"],
        [1, "loop"],
        [0, "loop"],
        [-1, "input"],
      ]);
      expect(history.map(({ next }) => next)).toEqual([[], ["c"], ["b"], ["a"], ["__start__"]]);
      expect(history.map(({ values }) => values.steps?.length ?? 0)).toEqual([4, 3, 2, 1, 0]);
      expect(history.map(({ tasks }) => tasks.map((task: Wire) => task.name))).toEqual([
        [],
        ["c"],
        ["b"],
        ["a"],
        ["__start__"],
      ]);
      expect(history[1].tasks[0]).toMatchObject({ result: { steps: ["c"] }, error: null, interrupts: [] });
      for (const [i, { parent_checkpoint }] of history.entries())
        expect(parent_checkpoint).toEqual(history[i + 1]?.checkpoint ?? null);
    });

    it("has ten states a page, and pages on before any of them in all three forms", async () => {
      const thread_id = await chained();
      await api.wait(thread_id, { assistant_id: "chain", input: { steps: ["in"] } });
      await api.wait(thread_id, { assistant_id: "chain", input: { steps: ["in"] } });
      const all = await api.history(thread_id, { limit: 100 });
      expect(all).toHaveLength(15);
      expect(await api.history(thread_id)).toEqual(all.slice(0, 10));
      expect(await api.get(`/threads/${thread_id}/history`)).toEqual(all.slice(0, 10));
      const { checkpoint } = all[3];
      const { checkpoint_id } = checkpoint;
      for (const before of [checkpoint_id, checkpoint, { configurable: { thread_id, checkpoint_id } }]) {
        expect(await api.history(thread_id, { before, limit: 4 })).toEqual(all.slice(4, 8));
      }
      expect(await api.get(`/threads/${thread_id}/history?before=${checkpoint_id}&limit=4`)).toEqual(all.slice(4, 8));
      expect(await api.history(thread_id, { before: all[14].checkpoint })).toEqual([]);
    });

    it("is whole although its states are too large for one page", async () => {
      const thread_id = await chained({ input: { steps: ["x".repeat(3_000_000)] } });
      const all = await api.history(thread_id, { limit: 100 });
      expect(all.map(({ metadata }) => metadata.step)).toEqual([3, 2, 1, 0, -1]);
      for (const past of all)
        expect(await api.get(`/threads/${thread_id}/state/${past.checkpoint.checkpoint_id}`)).toEqual(past);
      expect(await api.history(thread_id, { limit: 4 })).toEqual(all.slice(0, 4));
      const select = ["next", "values.steps"];
      const parts = all.map(({ next, values }) => ({ next, values }));
      expect(await api.history(thread_id, { limit: 100, select })).toEqual(parts);
    });

    it("is filtered by the metadata of runs, of steps, and of both", async () => {
      const thread_id = await chained({ metadata: { colour: "blue" } });
      await api.wait(thread_id, {
        assistant_id: "chain",
        input: { steps: [] },
        metadata: { colour: "red", tags: ["x", "y"] },
      });
      const found = async (metadata: object) => (await api.history(thread_id, { metadata })).length;
      const [{ run_id }] = await api.get(`/threads/${thread_id}/runs`);
      expect(await found({ colour: "blue" })).toBe(5);
      expect(await found({ run_id })).toBe(5);
      expect(await found({ tags: ["y"] })).toBe(5);
      expect(await found({ colour: "red", source: "input" })).toBe(1);
      expect(await found({ colour: "green" })).toBe(0);
    });

    it("returns only the selected parts", async () => {
      const [newest] = await api.history(await chained(), { select: ["next", "values.steps"], limit: 1 });
      expect(newest).toEqual({ next: [], values: { steps: ["in", "a", "b", "c"] } });
    });

    it("of a thread without a graph is empty", async () => {
      expect(await api.history(await api.newThread())).toEqual([]);
    });
  });

  describe("within a subgraph", () => {
    const paused = async (): Promise<string> => {
      const thread_id = await api.newThread();
      await api.wait(thread_id, { assistant_id: "parent", input: { steps: ["pause"] } });
      return thread_id;
    };

    it("is a pointer unless it is requested", async () => {
      const thread_id = await paused();
      const { tasks, next } = await api.state(thread_id);
      expect(next).toEqual(["child"]);
      expect(tasks).toHaveLength(1);
      expect(tasks[0]).toMatchObject({ name: "child", state: null, interrupts: [{ value: "go on?" }] });
      expect(tasks[0].checkpoint).toMatchObject({
        thread_id,
        checkpoint_ns: expect.stringMatching(/^child:[0-9a-f-]{36}$/),
      });
    });

    it("comes whole with subgraphs=true, whichever way it is read", async () => {
      const thread_id = await paused();
      const state = await api.get(`/threads/${thread_id}/state?subgraphs=true`);
      const [task] = state.tasks;
      expect(task).toMatchObject({ name: "child", checkpoint: null });
      expect(task.state).toMatchObject({
        values: { steps: ["pause", "before", "inner"] },
        next: ["ask"],
        tasks: [{ name: "ask", interrupts: [{ value: "go on?" }] }],
      });
      const { checkpoint } = state;
      expect(await api.post(`/threads/${thread_id}/state/checkpoint`, { checkpoint, subgraphs: true })).toEqual(state);
      expect(await api.get(`/threads/${thread_id}/state/${checkpoint.checkpoint_id}?subgraphs=1`)).toEqual(state);
    });

    it("is read by its pointer, and has a history of its own", async () => {
      const thread_id = await paused();
      const [{ checkpoint }] = (await api.state(thread_id)).tasks;
      const state = await api.post(`/threads/${thread_id}/state/checkpoint`, { checkpoint });
      expect(state).toMatchObject({
        values: { steps: ["pause", "before", "inner"] },
        next: ["ask"],
        checkpoint: { checkpoint_ns: checkpoint.checkpoint_ns },
      });
      const history = await api.history(thread_id, { checkpoint });
      expect(history.map(({ next }) => next)).toEqual([["ask"], ["inner"], ["__start__"]]);
      for (const past of history) expect(past.checkpoint.checkpoint_ns).toBe(checkpoint.checkpoint_ns);
      expect((await api.history(thread_id)).every((past) => past.checkpoint.checkpoint_ns === "")).toBe(true);
    });
  });

  it.each(["/state", "/history", "/state/x", "/state/checkpoint"])(
    "of an unknown thread is 404 at %s",
    async (path) => {
      const [method, body] =
        path === "/state/checkpoint" ? (["POST", { checkpoint: {} }] as const) : (["GET", undefined] as const);
      const answer = await api.send(method, `/threads/${UNKNOWN_ID}${path}`, body);
      expect(answer).toMatchObject({ status: 404, body: { detail: `Thread with ID ${UNKNOWN_ID} not found` } });
    },
  );
});
