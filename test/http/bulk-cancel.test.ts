import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { until } from "../support/until.ts";
import { Scenario, UNKNOWN_ID, type Wire } from "./scenario.ts";

describe.each(databases)("cancelling several runs on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  const LATER = { assistant_id: "chain", input: { steps: ["in"] }, after_seconds: 3600 };
  const cancel = (body: unknown, query = "") => api.send("POST", `/runs/cancel${query}`, body);
  const statusOf = async (run: Wire) =>
    (await api.send("GET", `/threads/${run.thread_id}/runs/${run.run_id}`)).body.status;

  describe("by their ids", () => {
    it("stops those and no others of the thread", async () => {
      const thread_id = await api.newThread();
      const running = await api.runningSlow(thread_id);
      const [first, second] = [await api.newRun(thread_id, LATER), await api.newRun(thread_id, LATER)];
      const answer = await cancel({ thread_id, run_ids: [running.run_id, second.run_id, second.run_id] });
      expect(answer).toMatchObject({ status: 204, text: "" });
      await until("it has stopped", async () => (await statusOf(running)) === "interrupted");
      expect([await statusOf(first), await statusOf(second)]).toEqual(["pending", "interrupted"]);
    });

    it("undoes them with action=rollback", async () => {
      const thread_id = await api.newThread({ metadata: { color: "red" } });
      const before = await api.thread(thread_id);
      const running = await api.runningSlow(thread_id);
      const waiting = await api.newRun(thread_id, LATER);
      const run_ids = [running.run_id, waiting.run_id];
      expect((await cancel({ thread_id, run_ids }, "?action=rollback")).status).toBe(204);
      await until("they are gone", async () => (await api.get(`/threads/${thread_id}/runs`)).length === 0);
      expect({ ...(await api.thread(thread_id)), updated_at: "" }).toEqual({ ...before, updated_at: "" });
      expect(await api.history(thread_id)).toEqual([]);
    });

    it.each([
      [404, "unknown", async () => UNKNOWN_ID],
      [404, "another thread's", async () => (await api.newRun(await api.newThread(), LATER)).run_id],
    ])("answers %s for one that is %s, and cancels none", async (status, _, other) => {
      const thread_id = await api.newThread();
      const run = await api.newRun(thread_id, LATER);
      expect((await cancel({ thread_id, run_ids: [run.run_id, await other()] })).status).toBe(status);
      expect(await statusOf(run)).toBe("pending");
    });

    it("answers 409 for one that has ended, and cancels none", async () => {
      const thread_id = await api.newThread();
      const ended = await api.newRun(thread_id, { ...LATER, after_seconds: 0 });
      await api.join(ended);
      const run = await api.newRun(thread_id, LATER);
      const answer = await cancel({ thread_id, run_ids: [run.run_id, ended.run_id] });
      expect(answer).toMatchObject({ status: 409, body: { detail: expect.stringContaining("success") } });
      expect(await statusOf(run)).toBe("pending");
    });
  });

  describe("by their status, over all threads,", () => {
    const several = async () => {
      const [one, other] = [await api.newThread(), await api.newThread()];
      const running = [await api.runningSlow(one), await api.runningSlow(other)];
      const pending = [await api.newRun(one, LATER), await api.newRun(await api.newThread(), LATER)];
      return { running, pending };
    };

    it("stops those that wait", async () => {
      const { running, pending } = await several();
      expect(await cancel({ status: "pending" })).toMatchObject({ status: 204, text: "" });
      for (const run of pending) expect(await statusOf(run)).toBe("interrupted");
      for (const run of running) expect(await statusOf(run)).toBe("running");
    });

    it("stops those that run", async () => {
      const { running, pending } = await several();
      expect((await cancel({ status: "running" })).status).toBe(204);
      for (const run of running) await until("it has stopped", async () => (await statusOf(run)) === "interrupted");
      for (const run of pending) expect(await statusOf(run)).toBe("pending");
    });

    it("rolls back all, including stateless ones, and succeeds without any run", async () => {
      const { running, pending } = await several();
      const stateless = api.send("POST", "/runs/wait", { assistant_id: "slow", input: { door: null } });
      await until("it runs", async () => (await api.get(`/threads/${running[0].thread_id}/runs`)).length > 0);
      const answers = await Promise.all([
        cancel({ status: "all" }, "?action=rollback"),
        cancel({ status: "all" }, "?action=rollback"),
      ]);
      expect(answers.map(({ status }) => status)).toEqual([204, 204]);
      for (const run of [...running, ...pending])
        await until("it is gone", async () => (await statusOf(run)) === undefined);
      await cancel({ status: "all" }, "?action=rollback");
      expect((await stateless).status).toBe(404);
      expect((await cancel({ status: "all" })).status).toBe(204);
    });
  });

  it.each([
    [{}, "either"],
    [{ status: "all", run_ids: [UNKNOWN_ID] }, "either"],
    [{ status: "all", thread_id: UNKNOWN_ID }, "either"],
    [{ thread_id: UNKNOWN_ID }, "run_ids"],
    [{ run_ids: [UNKNOWN_ID] }, "thread_id"],
    [{ thread_id: UNKNOWN_ID, run_ids: [] }, "run_ids"],
    [{ thread_id: "x", run_ids: [UNKNOWN_ID] }, "thread_id"],
    [{ status: "success" }, "status"],
    [[], "body"],
  ])("with %j is refused", async (body, what) => {
    expect(await cancel(body)).toMatchObject({ status: 422, body: { detail: expect.stringContaining(what) } });
  });

  it("with an unknown action is refused", async () => {
    expect((await cancel({ status: "all" }, "?action=stop")).status).toBe(422);
  });
});
