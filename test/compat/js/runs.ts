import { describe, expect, it } from "vitest";
import { gather, httpError, type NewClient, startWaiting, TIME, UUID, unique } from "./support.ts";

export function runScenarios(newClient: NewClient): void {
  const newThread = async () => (await newClient().threads.create()).thread_id;

  describe("runs", () => {
    it("are created at once, and joined for their values", async () => {
      const { runs, threads } = newClient();
      const thread_id = await newThread();
      const created = await runs.create(thread_id, "echo", { input: { text: "hi" }, metadata: { key: "value" } });
      expect(created).toMatchObject({ run_id: UUID, thread_id, status: "pending", multitask_strategy: "enqueue" });
      expect(created).toMatchObject({ created_at: TIME, updated_at: TIME, metadata: { key: "value" } });
      expect(created).toMatchObject({
        kwargs: { input: { text: "hi" } },
        assistant_id: (await newClient().assistants.get("echo")).assistant_id,
      });
      expect(await runs.join(thread_id, created.run_id)).toEqual({ text: "hi", echo: "hi", messages: [] });
      expect(await runs.get(thread_id, created.run_id)).toMatchObject({ run_id: created.run_id, status: "success" });
      expect(await runs.join(thread_id, created.run_id)).toEqual({ text: "hi", echo: "hi", messages: [] });
      expect((await threads.get(thread_id)).status).toBe("idle");
    });

    it("are waited for", async () => {
      const input = { messages: [{ role: "user", content: "hi" }] };
      const values = await newClient().runs.wait(await newThread(), "echo", { input });
      expect(values).toEqual({ echo: "hi", messages: [...input.messages, { role: "assistant", content: "hi" }] });
    });

    it("that fail make the client throw what the graph threw", async () => {
      const { runs, threads } = newClient();
      const thread_id = await newThread();
      const input = { color: "octarine" };
      await expect(runs.wait(thread_id, "failing", { input })).rejects.toThrow(
        'RangeError: There is no color "octarine".',
      );
      const [run] = await runs.list(thread_id);
      expect(run?.status).toBe("error");
      expect(await threads.get(thread_id)).toMatchObject({
        status: "error",
        values: { color: "octarine", seen: true },
      });
      const answer = await runs.wait(thread_id, "failing", { input, raiseError: false });
      expect(answer).toMatchObject({ __error__: { error: "RangeError", message: 'There is no color "octarine".' } });
      expect(await runs.join(thread_id, run?.run_id as string)).toHaveProperty("__error__.error", "RangeError");
    });

    it("that exceed the maximum number of steps fail with LangGraph's own error", async () => {
      const wait = newClient().runs.wait(await newThread(), "agent", { input: {}, config: { recursion_limit: 1 } });
      await expect(wait).rejects.toThrow("GraphRecursionError");
    });

    it("return their id as soon as they are created", async () => {
      const { runs } = newClient();
      const thread_id = await newThread();
      const created_runs: { run_id: string; thread_id?: string }[] = [];
      const options = { input: { text: "hi" }, onRunCreated: (run: { run_id: string }) => void created_runs.push(run) };
      const created = await runs.create(thread_id, "echo", options);
      await runs.wait(thread_id, "echo", options);
      const [metadata] = await gather(runs.stream(thread_id, "echo", options));
      const ids = [created.run_id, expect.any(String), metadata?.data.run_id];
      expect(created_runs).toEqual(ids.map((run_id) => ({ run_id, thread_id })));
      expect(await runs.list(thread_id)).toHaveLength(3);
    });

    it("are listed newest first, a page at a time, and by status", async () => {
      const { runs } = newClient();
      const thread_id = await newThread();
      await runs.wait(thread_id, "echo", { input: { text: "one" } });
      await runs.wait(thread_id, "failing", { input: {}, raiseError: false });
      await runs.wait(thread_id, "echo", { input: { text: "three" } });
      const listed = await runs.list(thread_id);
      expect(listed.map(({ status }) => status)).toEqual(["success", "error", "success"]);
      expect(listed.map((run) => (run as { kwargs?: { input: { text?: string } } }).kwargs?.input.text)).toEqual([
        "three",
        undefined,
        "one",
      ]);
      expect(await runs.list(thread_id, { limit: 1, offset: 1 })).toEqual([listed[1]]);
      expect(await runs.list(thread_id, { status: "error" })).toEqual([listed[1]]);
      const selected = await runs.list(thread_id, { limit: 1, select: ["run_id", "status"] });
      expect(selected).toEqual([{ run_id: listed[0]?.run_id, status: "success" }]);
    });

    it("are deleted together with what they wrote", async () => {
      const { runs, threads } = newClient();
      const thread_id = await newThread();
      const { run_id } = await runs.create(thread_id, "echo", { input: { text: "hi" } });
      await runs.join(thread_id, run_id);
      await runs.delete(thread_id, run_id);
      await expect(runs.get(thread_id, run_id)).rejects.toEqual(httpError(404, "Run not found"));
      expect(await threads.getHistory(thread_id)).toEqual([]);
    });

    it("need a thread, an assistant, and a body that matches the contract", async () => {
      const { runs } = newClient();
      const thread_id = await newThread();
      const missing = unique();
      await expect(runs.create(missing, "echo", { input: {} })).rejects.toEqual(httpError(404, missing));
      await expect(runs.create(thread_id, "nobody", { input: {} })).rejects.toEqual(
        httpError(404, 'No assistant found for \\"nobody\\"'),
      );
      await expect(runs.get(thread_id, missing)).rejects.toEqual(httpError(404, "Run not found"));
      await expect(runs.join(thread_id, missing)).rejects.toEqual(httpError(404, "Run not found"));
      const odd = { input: {}, streamMode: "everything" as never };
      await expect(runs.create(thread_id, "echo", odd)).rejects.toEqual(httpError(422, "stream_mode"));
    });

    it("create their thread on request", async () => {
      const { runs, threads } = newClient();
      const thread_id = unique();
      await runs.wait(thread_id, "echo", { input: { text: "hi" }, ifNotExists: "create" });
      expect(await threads.get(thread_id)).toMatchObject({ thread_id, status: "idle", values: { text: "hi" } });
    });

    it("are rejected on a busy thread with the strategy reject", async () => {
      const { runs } = newClient();
      const { thread_id, run_id, rest } = await startWaiting(newClient());
      const rejected = runs.create(thread_id, "echo", { input: {}, multitaskStrategy: "reject" });
      const sentence =
        "Thread is already running a task. Wait for it to finish or choose a different multitask strategy.";
      await expect(rejected).rejects.toEqual(httpError(409, sentence));
      const stream = gather(runs.stream(thread_id, "echo", { input: {}, multitaskStrategy: "reject" }));
      await expect(stream).rejects.toEqual(httpError(409, sentence));
      await runs.cancel(thread_id, run_id, true);
      await rest;
      await runs.wait(thread_id, "echo", { input: { text: "free again" }, multitaskStrategy: "reject" });
    });

    it("are queued on a busy thread, or interrupt the active run", async () => {
      const { runs } = newClient();
      const { thread_id, run_id, rest } = await startWaiting(newClient());
      const second = await runs.create(thread_id, "echo", { input: { text: "second" } });
      expect(await runs.get(thread_id, second.run_id)).toMatchObject({ status: "pending" });
      const third = await runs.wait(thread_id, "echo", { input: { text: "third" }, multitaskStrategy: "interrupt" });
      expect(third).toMatchObject({ text: "third" });
      await rest;
      expect(await runs.get(thread_id, run_id)).toMatchObject({ status: "interrupted" });
      expect(await runs.get(thread_id, second.run_id)).toMatchObject({ status: "interrupted" });
    });

    it("are delayed by after_seconds", async () => {
      const { runs, threads } = newClient();
      const thread_id = await newThread();
      const { run_id } = await runs.create(thread_id, "echo", { input: {}, afterSeconds: 3600 });
      expect(await runs.get(thread_id, run_id)).toMatchObject({ status: "pending" });
      expect(await threads.get(thread_id)).toMatchObject({ status: "busy" });
      await runs.cancel(thread_id, run_id);
      expect(await runs.get(thread_id, run_id)).toMatchObject({ status: "interrupted" });
      expect(await threads.get(thread_id)).toMatchObject({ status: "idle" });
    });

    it("start from an earlier checkpoint when one is named", async () => {
      const { runs, threads } = newClient();
      const thread_id = await newThread();
      await runs.wait(thread_id, "echo", { input: { messages: [{ role: "user", content: "one" }] } });
      const [{ checkpoint } = { checkpoint: undefined }] = await threads.getHistory(thread_id);
      const ask = (content: string, from: object = {}) =>
        runs.wait(thread_id, "echo", { input: { messages: [{ role: "user", content }] }, ...from });
      const contents = (values: unknown) =>
        (values as { messages: { content: string }[] }).messages.map(({ content }) => content);
      expect(contents(await ask("two"))).toEqual(["one", "one", "two", "two"]);
      expect(contents(await ask("three", { checkpointId: checkpoint?.checkpoint_id }))).toEqual([
        "one",
        "one",
        "three",
        "three",
      ]);
      expect(contents(await ask("four", { checkpoint: { ...checkpoint, thread_id: undefined } }))).toEqual([
        "one",
        "one",
        "four",
        "four",
      ]);
    });
  });
}
