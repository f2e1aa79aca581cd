import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { Scenario, UNKNOWN_ID, type Wire } from "./scenario.ts";

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,6}\+00:00$/;

describe.each(databases)("threads on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  const chain = (thread_id: string, steps = ["in"]) => api.wait(thread_id, { assistant_id: "chain", input: { steps } });

  it("a new thread is idle and empty", async () => {
    const thread = await api.post("/threads", {});
    const time = expect.stringMatching(TIME);
    expect(thread).toMatchObject({ metadata: {}, config: {}, status: "idle", values: null, interrupts: {} });
    expect(thread).toMatchObject({ created_at: time, updated_at: time, state_updated_at: time });
    expect(thread).not.toHaveProperty("ttl");
    expect(await api.thread(thread.thread_id)).toEqual(thread);
  });

  it("needs no body", async () => {
    expect((await api.send("POST", "/threads")).status).toBe(200);
  });

  it("a taken id is a conflict, or with do_nothing the thread that has it, unchanged", async () => {
    const thread_id = randomUUID();
    const first = await api.post("/threads", { thread_id, metadata: { n: 1 } });
    expect(first).toMatchObject({ thread_id, metadata: { n: 1 } });
    for (const body of [{ thread_id }, { thread_id: thread_id.toUpperCase() }, { thread_id, if_exists: "raise" }]) {
      expect(await api.send("POST", "/threads", body)).toMatchObject({
        status: 409,
        body: { detail: "Thread already exists" },
      });
    }
    expect(await api.post("/threads", { thread_id, metadata: { n: 2 }, if_exists: "do_nothing" })).toEqual(first);
  });

  it("an id may be written in capitals", async () => {
    const thread_id = await api.newThread();
    expect((await api.thread(thread_id.toUpperCase())).thread_id).toBe(thread_id);
  });

  describe("changing one", () => {
    it("merges metadata key by key", async () => {
      const before = await api.post("/threads", { metadata: { a: { x: 1 }, b: 2 } });
      const after = await api.call("PATCH", `/threads/${before.thread_id}`, { metadata: { a: { y: 2 }, c: null } });
      expect(after).toEqual({ ...before, metadata: { a: { y: 2 }, b: 2, c: null }, updated_at: after.updated_at });
      expect(after.updated_at >= before.updated_at).toBe(true);
      expect(await api.thread(before.thread_id)).toEqual(after);
    });

    it("answers without a body when the client prefers that", async () => {
      const thread_id = await api.newThread();
      const answer = await api.send(
        "PATCH",
        `/threads/${thread_id}`,
        { metadata: { a: 1 } },
        { Prefer: "return=minimal" },
      );
      expect(answer).toMatchObject({ status: 204, text: "" });
      expect((await api.thread(thread_id)).metadata).toEqual({ a: 1 });
    });
  });

  describe("deleting one", () => {
    const calls = (thread_id: string, run_id: string) =>
      [
        ["GET", `/threads/${thread_id}`],
        ["PATCH", `/threads/${thread_id}`],
        ["DELETE", `/threads/${thread_id}`],
        ["GET", `/threads/${thread_id}/state`],
        ["POST", `/threads/${thread_id}/state`],
        ["GET", `/threads/${thread_id}/history`],
        ["POST", `/threads/${thread_id}/history`],
        ["GET", `/threads/${thread_id}/runs`],
        ["GET", `/threads/${thread_id}/runs/${run_id}`],
        ["GET", `/threads/${thread_id}/runs/${run_id}/join`],
        ["GET", `/threads/${thread_id}/runs/${run_id}/stream`],
        ["DELETE", `/threads/${thread_id}/runs/${run_id}`],
        ["POST", `/threads/${thread_id}/runs/${run_id}/cancel`],
        ["GET", `/runs/${run_id}/join`],
      ] as const;

    it("deletes its runs and its state with it", async () => {
      const thread_id = await api.newThread();
      await chain(thread_id);
      const [{ run_id }] = await api.get(`/threads/${thread_id}/runs`);
      expect(await api.send("DELETE", `/threads/${thread_id}`)).toMatchObject({ status: 204, text: "" });
      for (const [method, path] of calls(thread_id, run_id)) {
        const body = method === "POST" || method === "PATCH" ? {} : undefined;
        expect([path, await api.send(method, path, body)]).toMatchObject([
          path,
          { status: 404, body: { detail: expect.any(String) } },
        ]);
      }
      expect((await api.send("GET", `/threads/${thread_id}`)).body.detail).toBe(
        `Thread with ID ${thread_id} not found`,
      );
      expect((await api.send("POST", `/threads/${thread_id}/runs`, { assistant_id: "chain" })).status).toBe(404);
    });

    it("frees its id for a thread without its data", async () => {
      const thread_id = await api.newThread();
      await chain(thread_id);
      await api.send("DELETE", `/threads/${thread_id}`);
      await api.newThread({ thread_id, metadata: { graph_id: "chain" } });
      expect(await api.history(thread_id)).toEqual([]);
      expect(await chain(thread_id, ["new"])).toEqual({ steps: ["new", "a", "b", "c"] });
    });

    it("ends the wait for its running run, and lets the server continue", async () => {
      const thread_id = await api.newThread();
      const run = await api.runningSlow(thread_id);
      const joined = api.send("GET", `/threads/${thread_id}/runs/${run.run_id}/join`);
      const streamed = api.send("GET", `/threads/${thread_id}/runs/${run.run_id}/stream`, undefined, {
        "Last-Event-ID": "-1",
      });
      expect((await api.send("DELETE", `/threads/${thread_id}`)).status).toBe(204);
      expect([200, 404]).toContain((await joined).status);
      expect([200, 404]).toContain((await streamed).status);
      expect(await chain(await api.newThread())).toEqual({ steps: ["in", "a", "b", "c"] });
    });
  });

  describe("copying one", () => {
    const copy = (thread_id: string): Promise<Wire> => api.post(`/threads/${thread_id}/copy`);

    it("copies state and history under the new id, and no runs", async () => {
      const source = await api.newThread({ metadata: { owner: "ada" } });
      await chain(source);
      const { thread_id, ...thread } = await copy(source);
      expect(thread_id).not.toBe(source);
      expect(thread).toMatchObject({
        metadata: { owner: "ada", graph_id: "chain", thread_id },
        status: "idle",
        values: { steps: ["in", "a", "b", "c"] },
      });
      const [before, after] = [await api.history(source), await api.history(thread_id)];
      expect(after.map((state) => state.values)).toEqual(before.map((state) => state.values));
      for (const state of after)
        expect([state.metadata.thread_id, state.checkpoint.thread_id]).toEqual([thread_id, thread_id]);
      for (const state of before) expect(state.metadata.thread_id).toBe(source);
      expect(JSON.stringify(after)).not.toContain(source);
      expect(await api.get(`/threads/${thread_id}/runs`)).toEqual([]);
    });

    it("makes two independent threads", async () => {
      const source = await api.newThread();
      await chain(source);
      const { thread_id } = await copy(source);
      expect(await chain(thread_id, ["more"])).toEqual({ steps: ["in", "a", "b", "c", "more", "a", "b", "c"] });
      expect((await api.state(source)).values).toEqual({ steps: ["in", "a", "b", "c"] });
      await api.send("DELETE", `/threads/${source}`);
      expect((await api.state(thread_id)).values.steps).toHaveLength(8);
    });

    it("of a paused thread can be resumed, within a subgraph too, while the source stays paused", async () => {
      const source = await api.newThread();
      await api.wait(source, { assistant_id: "parent", input: { steps: ["pause"] } });
      const { thread_id } = await copy(source);
      const done = await api.wait(thread_id, { assistant_id: "parent", command: { resume: "yes" } });
      expect(done.steps).toEqual(expect.arrayContaining(["answer yes", "after"]));
      expect(await api.thread(source)).toMatchObject({ status: "interrupted" });
      expect((await api.state(source)).next).toEqual(["child"]);
    });

    it("of a thread with an active run copies the state from before that run", async () => {
      const source = await api.newThread();
      await chain(source);
      const run = await api.runningSlow(source);
      const copied = await copy(source);
      expect(copied).toMatchObject({ status: "idle", values: { steps: ["in", "a", "b", "c"] } });
      const state = await api.state(copied.thread_id);
      expect([state.values, state.next]).toEqual([copied.values, []]);
      await api.cancel(run, "?action=rollback&wait=1");
    });

    it("of an unknown thread is a conflict", async () => {
      expect(await api.send("POST", `/threads/${UNKNOWN_ID}/copy`)).toMatchObject({
        status: 409,
        body: { detail: expect.stringContaining(UNKNOWN_ID) },
      });
    });
  });

  describe("starting one with supersteps", () => {
    const update = (as_node: string, values: object | null) => ({ updates: [{ as_node, values }] });

    it("replays a history as it was", async () => {
      const source = await api.newThread();
      await chain(source);
      const supersteps = [
        update("__input__", { steps: ["in"] }),
        update("__start__", { steps: ["in"] }),
        ...["a", "b", "c"].map((node) => update(node, { steps: [node] })),
      ];
      const thread = await api.post("/threads", { metadata: { graph_id: "chain" }, supersteps });
      expect(thread).toMatchObject({ status: "idle", values: { steps: ["in", "a", "b", "c"] } });
      const shape = (history: Wire[]) =>
        history.map(({ values, next, tasks }) => ({ values, next, tasks: tasks.map((task: Wire) => task.name) }));
      expect(shape(await api.history(thread.thread_id))).toEqual(shape(await api.history(source)));
    });

    it("may stop in the middle, and the first run continues from there", async () => {
      const supersteps = [
        update("__input__", { steps: ["in"] }),
        update("__start__", { steps: ["in"] }),
        update("a", { steps: ["A"] }),
      ];
      const { thread_id } = await api.post("/threads", { metadata: { graph_id: "chain" }, supersteps });
      expect((await api.state(thread_id)).next).toEqual(["b"]);
      expect(await api.wait(thread_id, { assistant_id: "chain", input: null })).toEqual({
        steps: ["in", "A", "b", "c"],
      });
    });

    it.each<[string, object, number, string]>([
      ["no graph", { supersteps: [update("a", {})] }, 400, "has no graph ID"],
      ["an unknown graph", { metadata: { graph_id: "nope" }, supersteps: [update("a", {})] }, 404, '"nope"'],
      ["an unknown node", { metadata: { graph_id: "chain" }, supersteps: [update("zzz", {})] }, 422, "zzz"],
      [
        "no node",
        { metadata: { graph_id: "chain" }, supersteps: [{ updates: [{ values: {} }] }] },
        422,
        "body.supersteps",
      ],
    ])("with %s is refused", async (_, body, status, why) => {
      expect(await api.send("POST", "/threads", body)).toMatchObject({
        status,
        body: { detail: expect.stringContaining(why) },
      });
    });
  });
});
