import type { Checkpoint } from "@langchain/langgraph-sdk";
import { describe, expect, it } from "vitest";
import { httpError, type NewClient, startWaiting, TIME, UUID, unique } from "./support.ts";

export function stateScenarios(newClient: NewClient): void {
  /** A thread on which `agent` has run, up to a breakpoint if one is named. */
  async function afterAgent(options: object = {}): Promise<string> {
    const { thread_id } = await newClient().threads.create();
    await newClient().runs.wait(thread_id, "agent", { input: { topic: "bees" }, ...options });
    return thread_id;
  }

  /** The answer is a checkpoint, and not the `configurable` of the client's types. */
  const updateState = (thread_id: string, update: object) =>
    newClient().threads.updateState(thread_id, update as never) as unknown as Promise<{ checkpoint: Checkpoint }>;

  describe("states", () => {
    it("of a thread without a run are empty", async () => {
      const { threads } = newClient();
      const { thread_id } = await threads.create();
      expect(await threads.getState(thread_id)).toMatchObject({
        values: {},
        next: [],
        tasks: [],
        checkpoint: null,
        parent_checkpoint: null,
      });
      expect(await threads.getHistory(thread_id)).toEqual([]);
      await expect(threads.updateState(thread_id, { values: {} })).rejects.toEqual(httpError(400, "graph"));
      await expect(threads.getState(unique())).rejects.toEqual(httpError(404, "not found"));
    });

    it("show values, what comes next, and where they are in the history", async () => {
      const { threads } = newClient();
      const thread_id = await afterAgent({ interruptBefore: ["finish"], metadata: { key: "value" } });
      const state = await threads.getState(thread_id);
      expect(state).toMatchObject({
        values: { topic: "bees", trail: ["begin", "look", "dig", "fill"] },
        next: ["finish"],
        tasks: [{ id: UUID, name: "finish", error: null, interrupts: [], checkpoint: null, state: null }],
        created_at: TIME,
        checkpoint: { thread_id, checkpoint_ns: "", checkpoint_id: UUID },
        parent_checkpoint: { thread_id, checkpoint_ns: "", checkpoint_id: UUID },
        metadata: { source: "loop", step: 2, key: "value", graph_id: "agent", thread_id, run_id: UUID },
      });
    });

    it("are read at a checkpoint, by its id and as an object", async () => {
      const { threads } = newClient();
      const thread_id = await afterAgent();
      const history = await threads.getHistory<{ trail: string[] }>(thread_id);
      const begun = history.find(({ next }) => next[0] === "inner");
      expect(begun?.values.trail).toEqual(["begin"]);
      expect(await threads.getState(thread_id, begun?.checkpoint.checkpoint_id as string)).toEqual(begun);
      expect(await threads.getState(thread_id, begun?.checkpoint)).toEqual(begun);
      await expect(threads.getState(thread_id, unique())).rejects.toEqual(httpError(404, "no checkpoint"));
    });

    it("of subgraphs are pointed to, or included when asked", async () => {
      const { threads, runs } = newClient();
      const { thread_id } = await threads.create();
      await runs.wait(thread_id, "asking", { input: { question: "Why?" } });
      const state = await threads.getState(thread_id);
      const [task] = state.tasks;
      const interrupts = [{ id: expect.any(String), value: "Why?" }];
      expect(task).toMatchObject({ name: "desk", interrupts, state: null });
      expect(task?.checkpoint).toMatchObject({ thread_id, checkpoint_ns: `desk:${task?.id}` });
      const withSubgraphs = await threads.getState(thread_id, undefined, { subgraphs: true });
      expect(withSubgraphs.tasks).toMatchObject([
        { name: "desk", interrupts, checkpoint: null, state: { next: ["ask"] } },
      ]);
      expect(withSubgraphs.tasks[0]?.state?.tasks).toMatchObject([{ name: "ask", interrupts }]);
      const inner = await threads.getState(thread_id, task?.checkpoint ?? undefined);
      expect(inner).toMatchObject({
        values: { question: "Why?" },
        next: ["ask"],
        tasks: [{ name: "ask", interrupts }],
      });
      const ofInner = await threads.getHistory(thread_id, { checkpoint: task?.checkpoint as never });
      expect(ofInner[0]).toMatchObject({ next: ["ask"], checkpoint: { checkpoint_ns: `desk:${task?.id}` } });
    });

    it("have a history, newest first, a page at a time, and by metadata", async () => {
      const { threads, runs } = newClient();
      const thread_id = await afterAgent({ metadata: { turn: 1 } });
      await runs.wait(thread_id, "agent", { input: { topic: "wasps" }, metadata: { turn: 2 } });
      const all = await threads.getHistory<{ topic: string }>(thread_id);
      expect(all.map(({ metadata }) => metadata?.turn)).toEqual([2, 2, 2, 2, 2, 1, 1, 1, 1, 1]);
      expect(all.map(({ metadata }) => metadata?.step)).toEqual([8, 7, 6, 5, 4, 3, 2, 1, 0, -1]);
      expect(all[0]?.values.topic).toBe("wasps");
      expect(all.slice(1).map(({ checkpoint }) => checkpoint)).toEqual(
        all.slice(0, -1).map((state) => state.parent_checkpoint),
      );
      expect(await threads.getHistory(thread_id, { limit: 2 })).toEqual(all.slice(0, 2));
      const before = { configurable: { checkpoint_id: all[3]?.checkpoint.checkpoint_id } };
      expect(await threads.getHistory(thread_id, { before: before as never, limit: 2 })).toEqual(all.slice(4, 6));
      expect(await threads.getHistory(thread_id, { before: all[3]?.checkpoint as never, limit: 2 })).toEqual(
        all.slice(4, 6),
      );
      expect(await threads.getHistory(thread_id, { metadata: { turn: 1 } })).toEqual(all.slice(5));
    });

    it("are changed from outside, as a node would", async () => {
      const { threads, runs } = newClient();
      const thread_id = await afterAgent({ interruptBefore: ["inner"] });
      const { checkpoint } = await updateState(thread_id, { values: { trail: ["by hand"] }, asNode: "inner" });
      expect(checkpoint).toMatchObject({ thread_id, checkpoint_ns: "", checkpoint_id: UUID });
      const state = await threads.getState(thread_id);
      expect(state).toMatchObject({
        values: { trail: ["begin", "by hand"] },
        next: ["finish"],
        metadata: { source: "update" },
      });
      expect(state.checkpoint).toMatchObject(checkpoint);
      expect(await threads.get(thread_id)).toMatchObject({
        status: "interrupted",
        values: { trail: ["begin", "by hand"] },
      });
      const done = await runs.wait(thread_id, "agent", { input: null });
      expect(done).toMatchObject({ trail: ["begin", "by hand", "finish plainly"] });
    });

    it("are changed at an earlier checkpoint, which makes a fork", async () => {
      const { threads, runs } = newClient();
      const thread_id = await afterAgent();
      const begun = (await threads.getHistory(thread_id)).find(({ next }) => next[0] === "inner");
      const fork = { values: { topic: "wasps" }, checkpoint: begun?.checkpoint };
      const { checkpoint } = await updateState(thread_id, fork);
      const forked = await threads.getState(thread_id, checkpoint);
      expect(forked).toMatchObject({ values: { topic: "wasps", trail: ["begin"] }, next: ["inner"] });
      expect(forked.parent_checkpoint).toMatchObject({ checkpoint_id: begun?.checkpoint.checkpoint_id });
      const done = await runs.wait(thread_id, "agent", { input: null });
      expect(done).toMatchObject({ topic: "wasps", trail: ["begin", "look", "dig", "fill", "finish plainly"] });
    });

    it("are not changed while a run is in progress", async () => {
      const { threads, runs } = newClient();
      const { thread_id, run_id, rest } = await startWaiting(newClient());
      const update = () => threads.updateState(thread_id, { values: { steps: ["by hand"] } });
      await expect(update()).rejects.toEqual(httpError(409, "Thread is busy"));
      await runs.cancel(thread_id, run_id, true);
      await rest;
      await update();
      expect((await threads.getState(thread_id)).values).toEqual({ steps: ["arrived", "by hand"] });
    });
  });
}
