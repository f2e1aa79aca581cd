import { describe, expect, it } from "vitest";
import { gather, httpError, type NewClient, startWaiting } from "./support.ts";

export function cancelScenarios(newClient: NewClient): void {
  describe("cancelling", () => {
    it("with wait responds when the run has stopped, and keeps its results", async () => {
      const { runs, threads } = newClient();
      const { thread_id, run_id, rest } = await startWaiting(newClient());
      expect(await runs.get(thread_id, run_id)).toMatchObject({ status: "running" });
      expect(await threads.get(thread_id)).toMatchObject({ status: "busy" });
      expect(await runs.cancel(thread_id, run_id, true)).toBeUndefined();
      expect(await runs.get(thread_id, run_id)).toMatchObject({ status: "interrupted" });
      expect(await threads.get(thread_id)).toMatchObject({ status: "idle", values: { steps: ["arrived"] } });
      expect(await threads.getState(thread_id)).toMatchObject({ values: { steps: ["arrived"] }, next: ["wait"] });
      expect((await rest).map(({ event }) => event)).not.toContain("error");
    });

    it("without wait returns immediately; join returns when the run has stopped", async () => {
      const { runs } = newClient();
      const { thread_id, run_id, rest } = await startWaiting(newClient());
      expect(await runs.cancel(thread_id, run_id)).toBeUndefined();
      expect(await runs.join(thread_id, run_id)).toEqual({ steps: ["arrived"] });
      expect(await runs.get(thread_id, run_id)).toMatchObject({ status: "interrupted" });
      await rest;
    });

    it("a run that has not started prevents it from starting", async () => {
      const { runs } = newClient();
      const { thread_id, run_id, rest } = await startWaiting(newClient());
      const pending = await runs.create(thread_id, "echo", { input: { text: "never" } });
      await runs.cancel(thread_id, pending.run_id);
      expect(await runs.get(thread_id, pending.run_id)).toMatchObject({ status: "interrupted" });
      expect(await runs.get(thread_id, run_id)).toMatchObject({ status: "running" });
      await runs.cancel(thread_id, run_id, true);
      await rest;
      expect((await newClient().threads.getState(thread_id)).values).toEqual({ steps: ["arrived"] });
    });

    it("with rollback undoes the run, even for clients that wait for it", async () => {
      const { runs, threads } = newClient();
      const { thread_id, run_id, rest } = await startWaiting(newClient());
      const joined = runs.join(thread_id, run_id);
      const refused = expect(joined).rejects.toEqual(httpError(404, "Run not found"));
      expect(await runs.cancel(thread_id, run_id, true, "rollback")).toBeUndefined();
      await refused;
      expect((await rest).map(({ event }) => event)).not.toContain("error");
      await expect(runs.get(thread_id, run_id)).rejects.toEqual(httpError(404, "Run not found"));
      expect(await runs.list(thread_id)).toEqual([]);
      expect(await threads.get(thread_id)).toMatchObject({ status: "idle", values: null });
      expect((await threads.getState(thread_id)).values).toEqual({});
    });

    it("several runs, by their ids and by their status", async () => {
      const { runs } = newClient();
      // Version 2.0.0 is older than this method.
      if (!runs.cancelMany) return;
      const { thread_id, run_id, rest } = await startWaiting(newClient());
      const pending = await runs.create(thread_id, "echo", { input: {} });
      await runs.cancelMany({ threadId: thread_id, runIds: [run_id, pending.run_id], action: "rollback" });
      await rest;
      expect(await runs.list(thread_id)).toEqual([]);
      await runs.cancelMany({ status: "all" });
      await expect(runs.cancelMany({ threadId: thread_id, runIds: [run_id] })).rejects.toEqual(
        httpError(404, "Run not found"),
      );
    });

    it("by a new run that replaces the old one", async () => {
      const { runs } = newClient();
      const { thread_id, run_id, rest } = await startWaiting(newClient());
      const run = await runs.create(thread_id, "echo", { input: { text: "instead" }, multitaskStrategy: "rollback" });
      expect(await runs.join(thread_id, run.run_id)).toMatchObject({ text: "instead" });
      await rest;
      await expect(runs.get(thread_id, run_id)).rejects.toEqual(httpError(404, "Run not found"));
    });

    it("a run that has ended is refused", async () => {
      const { runs, threads } = newClient();
      const { thread_id } = await threads.create();
      const { run_id } = await runs.create(thread_id, "echo", { input: {} });
      await runs.join(thread_id, run_id);
      await expect(runs.cancel(thread_id, run_id)).rejects.toEqual(httpError(409, "has ended"));
      await expect(runs.cancel(thread_id, run_id, true)).rejects.toEqual(httpError(409, "has ended"));
      await expect(runs.cancel(thread_id, thread_id)).rejects.toEqual(httpError(404, "Run not found"));
    });

    it("frees the thread for the next run, which starts from the state of the first", async () => {
      const { runs } = newClient();
      const { thread_id, run_id, rest } = await startWaiting(newClient());
      await runs.cancel(thread_id, run_id, true);
      await rest;
      const input = { steps: ["asked again"] };
      const paused = await runs.wait(thread_id, "waiting", { input, interruptBefore: ["wait"] });
      expect(paused).toMatchObject({ steps: ["arrived", "asked again", "arrived"] });
    });

    it("ends joins of the run without an error", async () => {
      const { runs } = newClient();
      const { thread_id, run_id, rest } = await startWaiting(newClient());
      const joined = gather(runs.joinStream(thread_id, run_id, { lastEventId: "-1" }));
      await runs.cancel(thread_id, run_id, true);
      expect((await joined).map(({ event }) => event)).toEqual(["metadata", "values", "custom"]);
      expect(await rest).toEqual([]);
    });
  });
}
