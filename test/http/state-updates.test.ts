import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { Scenario, UNKNOWN_ID, type Wire } from "./scenario.ts";

describe.each(databases)("changing the state of threads on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  const chain = (thread_id: string, body: object = {}) =>
    api.wait(thread_id, { assistant_id: "chain", input: { steps: ["in"] }, ...body });
  const chained = async (): Promise<string> => {
    const thread_id = await api.newThread();
    await chain(thread_id);
    return thread_id;
  };
  const update = (thread_id: string, body: object): Promise<Wire> => api.post(`/threads/${thread_id}/state`, body);

  describe("an update", () => {
    it("creates a checkpoint after the newest one, and the thread shows it", async () => {
      const thread_id = await chained();
      const before = await api.state(thread_id);
      const { checkpoint } = await update(thread_id, { values: { steps: ["x"] } });
      expect(checkpoint).toMatchObject({ thread_id, checkpoint_ns: "", checkpoint_id: expect.any(String) });
      const after = await api.state(thread_id);
      expect(after).toMatchObject({
        values: { steps: ["in", "a", "b", "c", "x"] },
        next: [],
        metadata: { source: "update", step: 4 },
      });
      expect(after.checkpoint.checkpoint_id).toBe(checkpoint.checkpoint_id);
      expect(after.parent_checkpoint).toEqual(before.checkpoint);
      expect(await api.history(thread_id)).toHaveLength(6);
      const thread = await api.thread(thread_id);
      expect(thread).toMatchObject({ status: "idle", values: after.values });
      expect(thread.state_updated_at > thread.created_at).toBe(true);
    });

    it.each([
      ["a", ["b"], ["in", "a", "b", "c", "x", "b", "c"]],
      ["b", ["c"], ["in", "a", "b", "c", "x", "c"]],
      ["__start__", ["a"], ["in", "a", "b", "c", "x", "a", "b", "c"]],
    ])("as the node %s decides what runs next", async (as_node, next, steps) => {
      const thread_id = await chained();
      await update(thread_id, { values: { steps: ["x"] }, as_node });
      expect((await api.state(thread_id)).next).toEqual(next);
      expect(await chain(thread_id, { input: null })).toEqual({ steps });
    });

    it("as __copy__ creates a copy of the newest checkpoint with the same parent", async () => {
      const thread_id = await chained();
      const before = await api.state(thread_id);
      await update(thread_id, { values: null, as_node: "__copy__" });
      const after = await api.state(thread_id);
      expect(after.checkpoint.checkpoint_id).not.toBe(before.checkpoint.checkpoint_id);
      expect([after.values, after.next, after.parent_checkpoint]).toEqual([
        before.values,
        before.next,
        before.parent_checkpoint,
      ]);
    });

    it("without values only advances to the next node", async () => {
      const thread_id = await api.newThread();
      await chain(thread_id, { interrupt_before: ["b"] });
      await update(thread_id, { values: null, as_node: "b" });
      expect(await api.state(thread_id)).toMatchObject({ values: { steps: ["in", "a"] }, next: ["c"] });
      await update(thread_id, { as_node: "c" });
      expect(await api.state(thread_id)).toMatchObject({ values: { steps: ["in", "a"] }, next: [] });
    });

    it("is where the next run starts from", async () => {
      const thread_id = await chained();
      await update(thread_id, { values: { steps: ["x"] } });
      expect(await chain(thread_id, { input: { steps: ["again"] } })).toEqual({
        steps: ["in", "a", "b", "c", "x", "again", "a", "b", "c"],
      });
    });

    it("makes the first state of a thread that has a graph and no run", async () => {
      const thread_id = await api.newThread({ metadata: { graph_id: "chain" } });
      await update(thread_id, { values: { steps: ["x"] }, as_node: "b" });
      expect(await api.state(thread_id)).toMatchObject({ values: { steps: ["x"] }, next: ["c"] });
      expect((await api.thread(thread_id)).values).toEqual({ steps: ["x"] });
    });

    it("keeps a paused thread paused, with its question still to be answered", async () => {
      const thread_id = await api.newThread();
      await api.wait(thread_id, { assistant_id: "gate", input: { steps: ["in"] } });
      await update(thread_id, { values: { steps: ["x"] }, as_node: "open" });
      expect(await api.thread(thread_id)).toMatchObject({ status: "interrupted" });
      expect((await api.state(thread_id)).next).toEqual(["ask"]);
      const asked = await api.wait(thread_id, { assistant_id: "gate", input: null });
      expect(asked.__interrupt__).toMatchObject([{ value: { question: "name?" } }]);
      expect(asked.steps).toEqual(["in", "open", "x"]);
    });

    it("within a subgraph changes that subgraph", async () => {
      const thread_id = await api.newThread();
      await api.wait(thread_id, { assistant_id: "parent", input: { steps: ["pause"] } });
      const [{ checkpoint }] = (await api.state(thread_id)).tasks;
      await update(thread_id, { values: { steps: ["from outside"] }, checkpoint, as_node: "ask" });
      const { tasks } = await api.get(`/threads/${thread_id}/state?subgraphs=true`);
      expect(tasks[0].state).toMatchObject({
        next: ["grandchild"],
        values: { steps: ["pause", "before", "inner", "from outside"] },
      });
    });

    it("of a run that was cancelled is allowed", async () => {
      const thread_id = await api.newThread();
      const run = await api.runningSlow(thread_id);
      expect((await api.cancel(run)).status).toBe(204);
      await update(thread_id, { values: { steps: ["x"] }, as_node: "wait" });
      expect(await api.state(thread_id)).toMatchObject({ values: { steps: ["in", "begin", "x"] }, next: [] });
      expect(await api.thread(thread_id)).toMatchObject({ status: "idle", values: { steps: ["in", "begin", "x"] } });
    });

    it("counts once when two arrive at the same time, and both when they arrive one after the other", async () => {
      const thread_id = await chained();
      const answers = await Promise.all(
        ["x", "y", "z"].map((step) => api.send("POST", `/threads/${thread_id}/state`, { values: { steps: [step] } })),
      );
      const accepted = answers.filter(({ status }) => status === 200).length;
      for (const { status } of answers) expect([200, 409]).toContain(status);
      // Each one that was accepted is there; none overwrote another.
      expect((await api.state(thread_id)).values.steps).toHaveLength(4 + accepted);
    });
  });

  describe("is refused", () => {
    it("while a run is running, and while one waits", async () => {
      const busy = await api.newThread();
      await api.runningSlow(busy);
      const waiting = await chained();
      const later = await api.newRun(waiting, { assistant_id: "chain", input: { steps: [] }, after_seconds: 3600 });
      for (const thread_id of [busy, waiting]) {
        const answer = await api.send("POST", `/threads/${thread_id}/state`, { values: { steps: ["x"] } });
        expect(answer).toMatchObject({ status: 409, body: { detail: expect.stringContaining("busy") } });
      }
      await api.cancel(later);
      await update(waiting, { values: { steps: ["x"] } });
      expect((await api.state(waiting)).values.steps.at(-1)).toBe("x");
    });

    it("on a thread without a graph, which says so", async () => {
      const thread_id = await api.newThread();
      const answer = await api.send("POST", `/threads/${thread_id}/state`, { values: { steps: ["x"] } });
      expect(answer).toMatchObject({
        status: 400,
        body: { detail: expect.stringContaining(`Thread ${thread_id} has no graph ID`) },
      });
    });

    it("on an unknown thread", async () => {
      expect(await api.send("POST", `/threads/${UNKNOWN_ID}/state`, { values: {} })).toMatchObject({
        status: 404,
        body: { detail: `Thread with ID ${UNKNOWN_ID} not found` },
      });
    });

    it.each<[string, object, string]>([
      ["a node that is not there", { values: { steps: [] }, as_node: "zzz" }, "zzz"],
      ["text for values", { values: "steps" }, "body.values"],
      ["a number for the node", { values: {}, as_node: 1 }, "body.as_node"],
      ["text for the checkpoint", { values: {}, checkpoint: "latest" }, "body.checkpoint"],
    ])("with %s, and changes nothing", async (_, body, why) => {
      const thread_id = await chained();
      const before = await api.history(thread_id);
      expect(await api.send("POST", `/threads/${thread_id}/state`, body)).toMatchObject({
        status: 422,
        body: { detail: expect.stringContaining(why) },
      });
      expect(await api.history(thread_id)).toEqual(before);
    });
  });

  describe("forking", () => {
    /** The checkpoint after which the node `next` would run. */
    const checkpointBefore = async (thread_id: string, next: string): Promise<Wire> =>
      (await api.history(thread_id)).find((past) => past.next[0] === next).checkpoint;

    it.each([
      ["checkpoint", (checkpoint: Wire) => ({ checkpoint })],
      ["checkpoint without thread and namespace", ({ checkpoint_id }: Wire) => ({ checkpoint: { checkpoint_id } })],
      ["checkpoint_id", ({ checkpoint_id }: Wire) => ({ checkpoint_id })],
      [
        "config.configurable.checkpoint_id",
        ({ checkpoint_id }: Wire) => ({ config: { configurable: { checkpoint_id } } }),
      ],
    ])("a run with %s continues from there", async (_, how) => {
      const thread_id = await chained();
      await chain(thread_id, { input: { steps: ["second"] } });
      const from = (await api.history(thread_id)).at(-3).checkpoint;
      expect((await api.get(`/threads/${thread_id}/state/${from.checkpoint_id}`)).next).toEqual(["b"]);
      expect(await chain(thread_id, { input: null, ...how(from) })).toEqual({ steps: ["in", "a", "b", "c"] });
      expect((await api.thread(thread_id)).values).toEqual({ steps: ["in", "a", "b", "c"] });
      // The next run goes on from the newest state, not from the fork's point again.
      expect(await chain(thread_id, { input: { steps: ["third"] } })).toEqual({
        steps: ["in", "a", "b", "c", "third", "a", "b", "c"],
      });
    });

    it("with an input starts again on the old state", async () => {
      const thread_id = await chained();
      const checkpoint = await checkpointBefore(thread_id, "c");
      expect(await chain(thread_id, { input: { steps: ["other"] }, checkpoint })).toEqual({
        steps: ["in", "a", "b", "other", "a", "b", "c"],
      });
    });

    it("by an update makes a sibling, from which a run continues", async () => {
      const thread_id = await chained();
      const old = await checkpointBefore(thread_id, "b");
      const { checkpoint } = await update(thread_id, { values: { steps: ["B"] }, as_node: "b", checkpoint: old });
      const state = await api.state(thread_id);
      expect(state).toMatchObject({
        values: { steps: ["in", "a", "B"] },
        next: ["c"],
        parent_checkpoint: { checkpoint_id: old.checkpoint_id },
      });
      expect(state.checkpoint.checkpoint_id).toBe(checkpoint.checkpoint_id);
      expect(await api.thread(thread_id)).toMatchObject({ status: "interrupted", values: { steps: ["in", "a", "B"] } });
      expect(await chain(thread_id, { input: null })).toEqual({ steps: ["in", "a", "B", "c"] });
      // What was there before is still there.
      expect((await api.history(thread_id)).map(({ values }) => values.steps?.join(""))).toContain("inabc");
    });

    it("by checkpoint_id does the same", async () => {
      const thread_id = await chained();
      const { checkpoint_id } = await checkpointBefore(thread_id, "c");
      await update(thread_id, { values: { steps: ["C"] }, as_node: "c", checkpoint_id });
      expect((await api.state(thread_id)).values).toEqual({ steps: ["in", "a", "b", "C"] });
    });

    it.each<[string, object]>([
      ["an input", { input: { steps: ["other"] } }],
      ["no input", { input: null }],
    ])(
      "a run with %s from a checkpoint that the thread does not have is refused, and nothing is lost",
      async (_, body) => {
        const thread_id = await chained();
        for (const how of [{ checkpoint_id: UNKNOWN_ID }, { checkpoint: { checkpoint_id: UNKNOWN_ID } }]) {
          const answer = await api.send("POST", `/threads/${thread_id}/runs/wait`, {
            assistant_id: "chain",
            ...body,
            ...how,
          });
          expect(answer).toMatchObject({ status: 404, body: { detail: expect.stringContaining(UNKNOWN_ID) } });
        }
        expect((await api.state(thread_id)).values).toEqual({ steps: ["in", "a", "b", "c"] });
      },
    );
  });
});
