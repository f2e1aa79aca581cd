import { describe, expect, it } from "vitest";
import { httpError, type NewClient, TIME, UUID, unique } from "./support.ts";

export function threadScenarios(newClient: NewClient): void {
  describe("threads", () => {
    it("are empty and idle when they are new", async () => {
      const { threads } = newClient();
      const metadata = { key: unique() };
      const created = await threads.create({ metadata });
      expect(created).toMatchObject({ thread_id: UUID, created_at: TIME, updated_at: TIME, status: "idle" });
      expect(created).toMatchObject({ metadata, config: {}, values: null, interrupts: {} });
      expect(await threads.get(created.thread_id)).toEqual(created);
    });

    it("take the id and the graph that the client names", async () => {
      const { threads } = newClient();
      const threadId = unique();
      const created = await threads.create({ threadId, graphId: "agent", metadata: { a: 1 } });
      expect(created).toMatchObject({ thread_id: threadId, metadata: { a: 1, graph_id: "agent" } });
      await expect(threads.create({ threadId })).rejects.toEqual(httpError(409, "Thread already exists"));
      expect(await threads.create({ threadId, ifExists: "do_nothing", metadata: { a: 2 } })).toEqual(created);
    });

    it("that do not exist are not found", async () => {
      const { threads } = newClient();
      const id = unique();
      await expect(threads.get(id)).rejects.toEqual(httpError(404, `Thread with ID ${id} not found`));
      await expect(threads.get("not-a-uuid")).rejects.toEqual(httpError(422, "UUID"));
    });

    it("start with a history that is sent as supersteps", async () => {
      const { threads } = newClient();
      const { thread_id } = await threads.create({
        graphId: "agent",
        supersteps: [
          { updates: [{ values: { topic: "bees" }, asNode: "__input__" }] },
          { updates: [{ values: { topic: "bees" }, asNode: "__start__" }] },
          { updates: [{ values: { trail: ["names"] }, asNode: "begin" }] },
        ],
      });
      const state = await threads.getState(thread_id);
      expect(state).toMatchObject({ values: { topic: "bees", trail: ["names"] }, next: ["inner"] });
      expect(await threads.getHistory(thread_id)).toHaveLength(3);
      expect(await threads.get(thread_id)).toMatchObject({ values: { topic: "bees", trail: ["names"] } });
    });

    it("merge new metadata into the old", async () => {
      const { threads } = newClient();
      const { thread_id } = await threads.create({ metadata: { a: 1, b: 1 } });
      expect(await threads.update(thread_id, { metadata: { b: 2 } })).toMatchObject({
        thread_id,
        metadata: { a: 1, b: 2 },
      });
      expect((await threads.get(thread_id)).metadata).toEqual({ a: 1, b: 2 });
      await expect(threads.update(unique(), { metadata: {} })).rejects.toEqual(httpError(404, "not found"));
    });

    it("are searched and counted by metadata, status, values and ids", async () => {
      const { threads, runs } = newClient();
      const key = unique();
      const [idle, done, paused] = [
        await threads.create({ metadata: { key, nested: { n: 1 } } }),
        await threads.create({ metadata: { key, nested: { n: 2 } } }),
        await threads.create({ metadata: { key } }),
      ];
      await runs.wait(done.thread_id, "echo", { input: { text: key } });
      await runs.wait(paused.thread_id, "agent", { input: {}, interruptBefore: ["finish"] });
      const search = async (query: object) =>
        (await threads.search({ metadata: { key }, ...query })).map(({ thread_id }) => thread_id);
      const all = [idle.thread_id, done.thread_id, paused.thread_id];
      expect(await search({ sortBy: "created_at", sortOrder: "asc" })).toEqual(all);
      expect(await search({ sortBy: "created_at", sortOrder: "desc", limit: 1, offset: 1 })).toEqual([done.thread_id]);
      expect(await search({})).toEqual([paused.thread_id, done.thread_id, idle.thread_id]);
      expect(await search({ metadata: { key, nested: { n: 2 } } })).toEqual([done.thread_id]);
      expect(await search({ status: "interrupted" })).toEqual([paused.thread_id]);
      expect(await search({ values: { text: key } })).toEqual([done.thread_id]);
      expect(await search({ ids: [idle.thread_id, unique()] })).toEqual([idle.thread_id]);
      expect(await threads.count({ metadata: { key } })).toBe(3);
      expect(await threads.count({ metadata: { key }, status: "idle" })).toBe(2);
      const select = { metadata: { key }, status: "interrupted" as const, select: ["thread_id", "status"] as never };
      expect(await threads.search(select)).toEqual([{ thread_id: paused.thread_id, status: "interrupted" }]);
    });

    it("are copied with their state and history, and are independent afterwards", async () => {
      const { threads, runs } = newClient();
      const source = await threads.create({ metadata: { a: 1 } });
      await runs.wait(source.thread_id, "echo", { input: { messages: [{ role: "user", content: "one" }] } });
      const copy = await threads.copy(source.thread_id);
      expect(copy.thread_id).not.toBe(source.thread_id);
      expect(copy).toMatchObject({ status: "idle", metadata: { a: 1, thread_id: copy.thread_id } });
      const [ofSource, ofCopy] = [await threads.getHistory(source.thread_id), await threads.getHistory(copy.thread_id)];
      expect(ofCopy.map(({ values }) => values)).toEqual(ofSource.map(({ values }) => values));
      expect(ofCopy.map(({ checkpoint }) => checkpoint.thread_id)).toEqual(ofSource.map(() => copy.thread_id));
      expect(await runs.list(copy.thread_id)).toEqual([]);
      await runs.wait(copy.thread_id, "echo", { input: { messages: [{ role: "user", content: "two" }] } });
      const messages = async (id: string) => ((await threads.getState(id)).values as { messages: unknown[] }).messages;
      expect(await messages(copy.thread_id)).toHaveLength(4);
      expect(await messages(source.thread_id)).toHaveLength(2);
      await expect(threads.copy(unique())).rejects.toEqual(httpError(409, "not found"));
    });

    it("are deleted with their runs and their state", async () => {
      const { threads, runs } = newClient();
      const { thread_id } = await threads.create();
      const run = await runs.create(thread_id, "echo", { input: { text: "hi" } });
      await runs.join(thread_id, run.run_id);
      await threads.delete(thread_id);
      await expect(threads.get(thread_id)).rejects.toEqual(httpError(404, thread_id));
      await expect(threads.getState(thread_id)).rejects.toEqual(httpError(404, thread_id));
      await expect(runs.get(thread_id, run.run_id)).rejects.toEqual(httpError(404, "Run not found"));
      await expect(threads.delete(thread_id)).rejects.toEqual(httpError(404, thread_id));
    });

    it("show the values, the status and the graph of what ran on them last", async () => {
      const { threads, runs } = newClient();
      const { thread_id } = await threads.create();
      await runs.wait(thread_id, "echo", { input: { text: "hi" } });
      const echo = await newClient().assistants.get("echo");
      expect(await threads.get(thread_id)).toMatchObject({
        status: "idle",
        values: { text: "hi", echo: "hi", messages: [] },
        metadata: { graph_id: "echo", assistant_id: echo.assistant_id },
      });
    });

    it("stream the events of their runs, from the start on request", async () => {
      const { runs, threads } = newClient();
      // Version 2.0.0 is older than this method.
      if (!threads.joinStream) return;
      const { thread_id } = await threads.create();
      const first = await runs.create(thread_id, "echo", { input: { text: "1" } });
      await runs.join(thread_id, first.run_id);
      const hangUp = new AbortController();
      const stream = threads.joinStream(thread_id, {
        lastEventId: "-",
        streamMode: ["lifecycle", "run_modes"],
        signal: hangUp.signal,
      });
      const names: string[] = [];
      for await (const { event, data } of stream as AsyncIterable<{ event: string; data: { event?: string } }>) {
        names.push(event === "lifecycle" ? (data.event as string) : event);
        if (names.at(-1) !== "completed") continue;
        if (names.filter((name) => name === "completed").length === 2) break;
        await runs.create(thread_id, "echo", { input: { text: "2" } });
      }
      hangUp.abort();
      const run = ["started", "metadata", "values", "values", "completed"];
      expect(names).toEqual([...run, ...run]);
    });
  });
}
