import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { Scenario, type Wire } from "./scenario.ts";

describe.each(databases)("several runs on one thread on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  const chain = (step: string, more: object = {}) => ({ assistant_id: "chain", input: { steps: [step] }, ...more });
  const statuses = async (thread_id: string) =>
    (await api.get(`/threads/${thread_id}/runs`)).map(({ status }: Wire) => status);

  describe("enqueue, which is the default,", () => {
    it("runs them in the order in which they were accepted, each on the state that the previous one left", async () => {
      const thread_id = await api.newThread();
      const door = api.newDoor();
      await api.runningSlow(thread_id, door.path);
      const runs: Wire[] = [];
      for (const step of ["1", "2", "3"])
        runs.push(await api.newRun(thread_id, chain(step, step === "2" ? { multitask_strategy: "enqueue" } : {})));
      expect(await statuses(thread_id)).toEqual(["pending", "pending", "pending", "running"]);
      expect((await api.thread(thread_id)).status).toBe("busy");
      door.open();
      const start = ["in", "begin", "end"];
      expect((await api.join(runs[2])).steps).toEqual([...start, ..."1abc2abc3abc"]);
      expect((await api.join(runs[0])).steps).toEqual([...start, ..."1abc"]);
      expect(await statuses(thread_id)).toEqual(["success", "success", "success", "success"]);
      expect((await api.thread(thread_id)).status).toBe("idle");
    });

    it("never runs two concurrently, however fast they arrive", async () => {
      const thread_id = await api.newThread();
      const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => api.wait(thread_id, chain(String(n)))));
      const longest = answers.map(({ steps }) => steps).sort((a, b) => b.length - a.length)[0] as string[];
      expect(longest).toHaveLength(8 * 4);
      // Each run's four steps stand together, and each answer is the beginning of the whole.
      expect(longest.join("")).toMatch(/^(\dabc){8}$/);
      for (const { steps } of answers) expect(longest.join("").startsWith(steps.join(""))).toBe(true);
    });

    it("continues after one that fails", async () => {
      const thread_id = await api.newThread();
      const door = api.newDoor();
      await api.runningSlow(thread_id, door.path);
      const failing = await api.newRun(thread_id, { assistant_id: "fails", input: { kind: "type_error", steps: [] } });
      const next = await api.newRun(thread_id, chain("x"));
      door.open();
      expect((await api.join(failing)).__error__.error).toBe("TypeError");
      expect((await api.join(next)).steps.slice(-4)).toEqual(["x", "a", "b", "c"]);
      expect(await api.thread(thread_id)).toMatchObject({ status: "idle" });
    });

    it("leaves the graph of the thread unchanged until their turn", async () => {
      const thread_id = await api.newThread();
      await api.runningSlow(thread_id);
      await api.newRun(thread_id, chain("x"));
      expect((await api.thread(thread_id)).metadata.graph_id).toBe("slow");
    });
  });

  describe("reject", () => {
    const DETAIL = "Thread is already running a task. Wait for it to finish or choose a different multitask strategy.";

    it.each(["", "/wait", "/stream"])(
      "refuses POST /runs%s while one is running or waits, and creates no run",
      async (rest) => {
        const busy = await api.newThread();
        await api.runningSlow(busy);
        const waiting = await api.newThread();
        await api.newRun(waiting, chain("later", { after_seconds: 3600 }));
        for (const thread_id of [busy, waiting]) {
          const answer = await api.send(
            "POST",
            `/threads/${thread_id}/runs${rest}`,
            chain("x", { multitask_strategy: "reject" }),
          );
          expect(answer).toMatchObject({ status: 409, body: { detail: DETAIL } });
          expect(await statuses(thread_id)).toHaveLength(1);
        }
      },
    );

    it("accepts a run on a free thread, and only one of many concurrent ones", async () => {
      const thread_id = await api.newThread();
      expect((await api.wait(thread_id, chain("x", { multitask_strategy: "reject" }))).steps).toHaveLength(4);
      const body = { assistant_id: "slow", input: { door: null }, multitask_strategy: "reject" };
      const answers = await Promise.all(
        Array.from({ length: 5 }, () => api.send("POST", `/threads/${thread_id}/runs`, body)),
      );
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409]);
    });
  });

  describe("interrupt", () => {
    it("stops the running one and starts on its partial state", async () => {
      const thread_id = await api.newThread();
      const old = await api.runningSlow(thread_id);
      const run = await api.newRun(thread_id, chain("x", { multitask_strategy: "interrupt" }));
      expect(run).toMatchObject({ status: "pending", multitask_strategy: "interrupt" });
      expect((await api.join(run)).steps).toEqual(["in", "begin", "x", "a", "b", "c"]);
      expect((await api.run(old)).status).toBe("interrupted");
      expect(await api.thread(thread_id)).toMatchObject({
        status: "idle",
        values: { steps: ["in", "begin", "x", "a", "b", "c"] },
      });
    });

    it("stops those that wait too", async () => {
      const thread_id = await api.newThread();
      await api.runningSlow(thread_id);
      await api.newRun(thread_id, chain("1"));
      await api.newRun(thread_id, chain("2", { after_seconds: 3600 }));
      expect((await api.wait(thread_id, chain("x", { multitask_strategy: "interrupt" }))).steps).toEqual([
        "in",
        "begin",
        "x",
        "a",
        "b",
        "c",
      ]);
      expect(await statuses(thread_id)).toEqual(["success", "interrupted", "interrupted", "interrupted"]);
    });

    it("on a free thread just runs", async () => {
      expect(
        (await api.wait(await api.newThread(), chain("x", { multitask_strategy: "interrupt" }))).steps,
      ).toHaveLength(4);
    });
  });

  describe("after_seconds", () => {
    it("lets a run wait for its time, and keeps its thread busy", async () => {
      const thread_id = await api.newThread();
      const before = Date.now();
      const run = await api.newRun(thread_id, chain("x", { after_seconds: 0.4 }));
      expect([run.status, (await api.thread(thread_id)).status]).toEqual(["pending", "busy"]);
      expect((await api.join(run)).steps).toEqual(["x", "a", "b", "c"]);
      expect(Date.now() - before).toBeGreaterThanOrEqual(400);
      expect((await api.thread(thread_id)).status).toBe("idle");
    });

    it("lets runs that may start earlier go first", async () => {
      const thread_id = await api.newThread();
      const delayed = await api.newRun(thread_id, chain("later", { after_seconds: 3600 }));
      expect((await api.wait(thread_id, chain("now"))).steps).toEqual(["now", "a", "b", "c"]);
      expect((await api.run(delayed)).status).toBe("pending");
      expect((await api.thread(thread_id)).status).toBe("busy");
    });

    it("works without a thread", async () => {
      const before = Date.now();
      expect((await api.post("/runs/wait", chain("x", { after_seconds: 0.2 }))).steps).toHaveLength(4);
      expect(Date.now() - before).toBeGreaterThanOrEqual(200);
    });
  });
});
