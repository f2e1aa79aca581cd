import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { parseSse } from "../support/sse.ts";
import { until } from "../support/until.ts";
import { Scenario, UNKNOWN_ID, type Wire } from "./scenario.ts";

describe.each(databases)("cancelling runs on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  const CHAIN = { assistant_id: "chain", input: { steps: ["in"] } };
  const PARTIAL = { steps: ["in", "begin"], door: null };

  describe("a pending one", () => {
    it.each([
      ["?wait=1", 204],
      ["?wait=0", 202],
      ["", 202],
    ])("with %j is answered %s; it never starts, and the thread is free", async (query, status) => {
      const thread_id = await api.newThread();
      await api.wait(thread_id, CHAIN);
      const run = await api.newRun(thread_id, { ...CHAIN, after_seconds: 3600 });
      expect(await api.cancel(run, query)).toMatchObject({ status, text: "" });
      expect((await api.run(run)).status).toBe("interrupted");
      expect(await api.thread(thread_id)).toMatchObject({ status: "idle", values: { steps: ["in", "a", "b", "c"] } });
      expect(await api.history(thread_id)).toHaveLength(5);
      expect((await api.wait(thread_id, CHAIN)).steps).toHaveLength(8);
    });

    it("behind a running one leaves that running, and the rest of the queue in order", async () => {
      const thread_id = await api.newThread();
      const door = api.newDoor();
      const running = await api.runningSlow(thread_id, door.path);
      const [first, second] = [await api.newRun(thread_id, CHAIN), await api.newRun(thread_id, CHAIN)];
      await api.cancel(first);
      expect((await api.run(running)).status).toBe("running");
      expect((await api.thread(thread_id)).status).toBe("busy");
      door.open();
      expect((await api.join(second)).steps).toEqual(["in", "begin", "end", "in", "a", "b", "c"]);
      expect((await api.run(first)).status).toBe("interrupted");
    });

    it("ends the wait for it with an empty answer", async () => {
      const run = await api.newRun(await api.newThread(), { ...CHAIN, after_seconds: 3600 });
      const joined = api.send("GET", `/threads/${run.thread_id}/runs/${run.run_id}/join`);
      await api.cancel(run);
      expect(await joined).toMatchObject({ status: 200, body: {} });
    });
  });

  describe("a running one", () => {
    it.each(["1", "true", "yes", "TRUE"])(
      "with wait=%s is answered when it has stopped, and keeps what it did",
      async (wait) => {
        const run = await api.runningSlow(await api.newThread());
        expect(await api.cancel(run, `?wait=${wait}`)).toMatchObject({ status: 204, text: "" });
        expect((await api.run(run)).status).toBe("interrupted");
        expect(await api.thread(run.thread_id)).toMatchObject({ status: "idle", values: PARTIAL, interrupts: {} });
        expect((await api.state(run.thread_id)).next).toEqual(["wait"]);
        expect(await api.join(run)).toEqual(PARTIAL);
      },
    );

    it.each(["?wait=0", "?wait=false", "?wait=no", "", "?action=interrupt"])(
      "with %j is answered at once and stops soon",
      async (query) => {
        const run = await api.runningSlow(await api.newThread());
        expect(await api.cancel(run, query)).toMatchObject({ status: 202, text: "" });
        await until("it has stopped", async () => (await api.run(run)).status === "interrupted");
        expect((await api.thread(run.thread_id)).status).toBe("idle");
      },
    );

    it("ends its streams cleanly, after its status is final", async () => {
      const run = await api.runningSlow(await api.newThread());
      const streamed = api.send("GET", `/threads/${run.thread_id}/runs/${run.run_id}/stream`, undefined, {
        "Last-Event-ID": "-1",
      });
      await api.cancel(run, "?wait=0");
      const events = parseSse((await streamed).text);
      expect((await api.run(run)).status).toBe("interrupted");
      expect(new Set(events.map(({ event }) => event))).toEqual(new Set(["metadata", "values"]));
      // The last step's event may have come after the cancel: then it is not told, but nothing else is.
      expect(PARTIAL.steps).toEqual(expect.arrayContaining(events.at(-1)?.data.steps));
    });

    it("ends the wait of its creator with the values so far", async () => {
      const thread_id = await api.newThread();
      const waited = api.send("POST", `/threads/${thread_id}/runs/wait`, {
        assistant_id: "slow",
        input: { steps: ["in"], door: null },
      });
      const [run] = await until("it runs", async () => {
        const runs: Wire[] = await api.get(`/threads/${thread_id}/runs?status=running`);
        return runs.length > 0 && (await api.state(thread_id)).next.includes("wait") ? runs : undefined;
      });
      await api.cancel(run, "?wait=0");
      expect(await waited).toMatchObject({ status: 200, body: PARTIAL });
    });

    it("that ignores the abort signal is abandoned after the grace period", async () => {
      const thread_id = await api.newThread();
      const run = await api.newRun(thread_id, { assistant_id: "unabortable", input: { steps: ["in"] } });
      await until("it waits", async () => (await api.state(thread_id)).next?.includes("wait"));
      expect((await api.cancel(run)).status).toBe(204);
      expect((await api.run(run)).status).toBe("interrupted");
      expect(await api.thread(thread_id)).toMatchObject({ status: "idle", values: { steps: ["in", "begin"] } });
      expect(await api.wait(thread_id, CHAIN)).toEqual({ steps: ["in", "begin", "in", "a", "b", "c"] });
    });

    it("twice is no error the first time and one the second, once it has stopped", async () => {
      const run = await api.runningSlow(await api.newThread());
      const answers = await Promise.all([api.cancel(run), api.cancel(run)]);
      for (const { status } of answers) expect([204, 409]).toContain(status);
      expect(answers.map(({ status }) => status)).toContain(204);
      expect((await api.cancel(run)).status).toBe(409);
    });

    it("lets the next run continue from its partial state, or from its next node", async () => {
      const thread_id = await api.newThread();
      await api.cancel(await api.runningSlow(thread_id));
      const door = api.newDoor();
      door.open();
      await api.post(`/threads/${thread_id}/state`, { values: { door: door.path }, as_node: "begin" });
      expect((await api.wait(thread_id, { assistant_id: "slow", input: null })).steps).toEqual(["in", "begin", "end"]);
      expect((await api.thread(thread_id)).status).toBe("idle");
    });

    it("keeps the reason", async () => {
      const run = await api.runningSlow(await api.newThread());
      await api.cancel(run, "?wait=1&reason=taken%3Aover");
      expect((await api.run(run)).cancel_reason).toBe("taken:over");
    });
  });

  it.each([
    ["success", CHAIN],
    ["error", { assistant_id: "fails", input: { kind: "type_error" } }],
    ["interrupted", { assistant_id: "gate", input: { steps: [] } }],
  ])("one that has ended as %s is a conflict that names its status", async (status, body) => {
    const thread_id = await api.newThread();
    const run = await api.newRun(thread_id, body);
    await api.join(run);
    const before = await api.thread(thread_id);
    const answer = await api.cancel(run, "?wait=0");
    expect(answer).toMatchObject({ status: 409, body: { detail: expect.stringContaining(status) } });
    expect(await api.thread(thread_id)).toEqual(before);
    if (status !== "interrupted") return;
    // The pause stays, and can be answered.
    await api.wait(thread_id, { assistant_id: "gate", command: { resume: "Ada" } });
    expect((await api.wait(thread_id, { assistant_id: "gate", command: { resume: 36 } })).answers).toEqual({
      name: "Ada",
      age: 36,
    });
  });

  it("an unknown run returns 404", async () => {
    const thread_id = await api.newThread();
    expect(await api.cancel({ thread_id, run_id: UNKNOWN_ID })).toMatchObject({
      status: 404,
      body: { detail: "Run not found" },
    });
    expect((await api.cancel({ thread_id: UNKNOWN_ID, run_id: UNKNOWN_ID })).status).toBe(404);
  });

  it.each([
    ["?wait=maybe", "query.wait"],
    ["?wait=2", "query.wait"],
    ["?wait=1&wait=0", "query.wait"],
    ["?action=stop", "query.action"],
  ])("with the unreadable query %s is refused, and the run continues", async (query, where) => {
    const run = await api.newRun(await api.newThread(), { ...CHAIN, after_seconds: 3600 });
    expect(await api.cancel(run, query)).toMatchObject({
      status: 422,
      body: { detail: expect.stringContaining(where) },
    });
    expect((await api.run(run)).status).toBe("pending");
  });
});
