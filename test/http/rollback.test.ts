import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Tx } from "../../src/platform/database/database.ts";
import { databases } from "../support/databases.ts";
import { rowsOfRun, rowsOfThread } from "../support/rows.ts";
import { parseSse } from "../support/sse.ts";
import { openOn } from "../support/storage.ts";
import { readUntil } from "../support/stream.ts";
import { until } from "../support/until.ts";
import { Scenario, type Wire } from "./scenario.ts";

describe.each(databases)("rolling back runs on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  const CHAIN = { assistant_id: "chain", input: { steps: ["in"] } };
  const ROLLBACK = "?action=rollback&wait=1";

  /** All that a client and the database can say of a thread. */
  const picture = async (thread_id: string) => ({
    thread: await api.thread(thread_id),
    state: await api.get(`/threads/${thread_id}/state?subgraphs=true`),
    history: await api.history(thread_id),
    runs: await api.get(`/threads/${thread_id}/runs`),
    rows: await rowsOfThread(api.service.database, thread_id),
  });

  async function expectUndone(run: Wire, before: Wire): Promise<void> {
    expect(await api.send("GET", `/threads/${run.thread_id}/runs/${run.run_id}`)).toMatchObject({
      status: 404,
      body: { detail: "Run not found" },
    });
    expect(await picture(run.thread_id)).toEqual(before);
    expect(await rowsOfRun(api.service.database, run.run_id)).toBe(0);
  }

  /** Threads that a run can find. */
  const THREADS: [string, () => Promise<string>][] = [
    ["a new thread", () => api.newThread({ metadata: { color: "red" } })],
    [
      "a thread with a history",
      async () => {
        const thread_id = await api.newThread();
        await api.wait(thread_id, CHAIN);
        await api.post(`/threads/${thread_id}/state`, { values: { steps: ["by hand"] } });
        return thread_id;
      },
    ],
    [
      "a paused thread",
      async () => {
        const thread_id = await api.newThread();
        await api.wait(thread_id, { assistant_id: "slowgate", input: { steps: ["in"], door: null } });
        return thread_id;
      },
    ],
    [
      "a failed thread",
      async () => {
        const thread_id = await api.newThread();
        await api.wait(thread_id, { assistant_id: "fails", input: { kind: "type_error" } });
        return thread_id;
      },
    ],
  ];

  describe.each(THREADS)("on %s", (_, newThread) => {
    it("a pending one is undone immediately", async () => {
      const thread_id = await newThread();
      const before = await picture(thread_id);
      const run = await api.newRun(thread_id, { ...CHAIN, after_seconds: 3600 });
      expect(await api.cancel(run, "?action=rollback")).toMatchObject({ status: 202, text: "" });
      await expectUndone(run, before);
    });

    it.each(["slow", "nested", "unabortable"])("a running one of the graph %s is undone", async (assistant_id) => {
      const thread_id = await newThread();
      const before = await picture(thread_id);
      const run = await api.newRun(thread_id, { assistant_id, input: { steps: ["in"], door: null } });
      const node = assistant_id === "nested" ? "inner" : "wait";
      await until("it has begun", async () => (await api.state(thread_id)).next?.includes(node));
      expect(await api.cancel(run, ROLLBACK)).toMatchObject({ status: 204, text: "" });
      await expectUndone(run, before);
      const after = await api.wait(thread_id, CHAIN);
      expect(after.steps.slice(-4)).toEqual(["in", "a", "b", "c"]);
      expect(after.steps).toHaveLength((before.thread.values?.steps?.length ?? 0) + 4);
      expect((await api.state(thread_id)).values.steps).toEqual(after.steps);
    });
  });

  it("one that has created its thread leaves an idle thread that no graph has used", async () => {
    const thread_id = randomUUID();
    const metadata = { color: "red" };
    const body = { ...CHAIN, after_seconds: 3600, if_not_exists: "create", metadata };
    const run = await api.newRun(thread_id, body);
    const busy = await api.thread(thread_id);
    expect(busy).toMatchObject({
      status: "busy",
      metadata: { ...metadata, graph_id: "chain", assistant_id: run.assistant_id },
    });
    await api.cancel(run, "?action=rollback");
    expect(await api.thread(thread_id)).toEqual({ ...busy, status: "idle", metadata });
    expect((await api.wait(thread_id, CHAIN)).steps).toEqual(["in", "a", "b", "c"]);
  });

  it("one that answers a question is undone, and the question stays open, even one on another run's checkpoint", async () => {
    const thread_id = await api.newThread();
    const door = api.newDoor();
    const answer = (resume: string) => ({ assistant_id: "slowgate", command: { resume } });
    const undoOne = async () => {
      const before = await picture(thread_id);
      expect(before.thread).toMatchObject({ status: "interrupted" });
      const streamed = api.send("POST", `/threads/${thread_id}/runs/stream`, answer("wrong"));
      const run = await until("it has taken the answer", async () => {
        const [first] = await api.get(`/threads/${thread_id}/runs?status=running`);
        return first && (await rowsOfRun(api.service.database, first.run_id)) > 2 ? first : undefined;
      });
      expect((await api.cancel(run, ROLLBACK)).status).toBe(204);
      expect((await streamed).text).not.toContain("event: error");
      await expectUndone(run, before);
    };

    await api.wait(thread_id, { assistant_id: "slowgate", input: { steps: ["in"], door: door.path } });
    await undoOne();
    door.open();
    expect((await api.wait(thread_id, answer("right"))).__interrupt__).toMatchObject([{ value: "second?" }]);
    await undoOne();
    writeFileSync(`${door.path}-second`, "");
    expect((await api.wait(thread_id, answer("then"))).steps).toEqual(["in", "begin", "right", "then"]);
  });

  it("ends streams cleanly and joins with 404", async () => {
    const thread_id = await api.newThread();
    const run = await api.runningSlow(thread_id);
    const path = `/threads/${thread_id}/runs/${run.run_id}`;
    const streamed = api.send("GET", `${path}/stream`, undefined, { "Last-Event-ID": "-1" });
    const joined = api.send("GET", `${path}/join`);
    const waited = api.send("POST", `/threads/${thread_id}/runs/wait`, { ...CHAIN, after_seconds: 3600 });
    const [queued] = await until("it waits", async () => {
      const runs = await api.get(`/threads/${thread_id}/runs?status=pending`);
      return runs.length > 0 && runs;
    });
    expect((await api.cancel(queued, ROLLBACK)).status).toBe(204);
    expect(await waited).toMatchObject({ status: 404 });
    expect((await api.cancel(run, ROLLBACK)).status).toBe(204);
    expect(await joined).toMatchObject({ status: 404, body: { detail: "Run not found" } });
    const events = parseSse((await streamed).text);
    expect(events[0]?.event).toBe("metadata");
    expect(new Set(events.map(({ event }) => event))).toEqual(new Set(["metadata", "values"]));
  });

  it("ends a join whose response has started with the same reason", async () => {
    const run = await api.runningSlow(await api.newThread());
    const path = `/threads/${run.thread_id}/runs/${run.run_id}/join`;
    // The headers of the response arrive after a second.
    const response = await api.service.threadmill.fetch(new Request(`http://localhost${path}`));
    expect((await api.cancel(run, ROLLBACK)).status).toBe(204);
    expect(await response.json()).toEqual({ __error__: { error: "ApiError", message: "Run not found" } });
  });

  it("replaces an earlier interrupt, and cannot be reverted by a later one", async () => {
    for (const [first, second] of [
      ["interrupt", "rollback"],
      ["rollback", "interrupt"],
    ]) {
      const thread_id = await api.newThread();
      const before = await picture(thread_id);
      const run = await api.newRun(thread_id, {
        assistant_id: "unabortable",
        stream_mode: "custom",
        input: { steps: ["in"] },
      });
      // Not before: a node that has not begun hears the first of the two.
      await readUntil(api.service, run, ({ event }) => event === "custom");
      // A checkpoint that is still being written would be refused after the first cancel, and the run would end at once.
      await until("the checkpoint before the node is stored", async () =>
        (await api.state(thread_id)).next?.includes("wait"),
      );
      // The node ignores the signal, so the second cancel arrives within the grace, unless it waits for the answer to the first.
      await Promise.all([api.cancel(run, `?action=${first}`), api.cancel(run, `?action=${second}&wait=1`)]);
      await expectUndone(run, before);
    }
  });

  it("of a delayed run leaves the thread to those that overtook it", async () => {
    const thread_id = await api.newThread();
    const delayed = await api.newRun(thread_id, { assistant_id: "agent", input: {}, after_seconds: 3600 });
    await api.wait(thread_id, { ...CHAIN, assistant_id: "agent" });
    await api.cancel(delayed, ROLLBACK);
    expect(await api.thread(thread_id)).toMatchObject({ status: "idle", metadata: { graph_id: "agent" } });
    expect((await api.state(thread_id)).values.steps).toHaveLength(4);
  });

  it("of a delayed run that has started keeps the changes of the runs that overtook it", async () => {
    const thread_id = await api.newThread();
    const delayed = await api.newRun(thread_id, { assistant_id: "slow", input: { door: null }, after_seconds: 0.5 });
    await api.wait(thread_id, CHAIN);
    await until("it has begun", async () => (await api.state(thread_id)).next?.includes("wait"));
    expect((await api.thread(thread_id)).metadata.graph_id).toBe("slow");
    await api.cancel(delayed, ROLLBACK);
    expect(await api.thread(thread_id)).toMatchObject({ status: "idle", metadata: { graph_id: "chain" } });
  });

  it("of a delayed run that was claimed twice restores the graph of the runs that overtook it", async () => {
    const thread_id = await api.newThread();
    const delayed = await api.newRun(thread_id, { assistant_id: "slow", input: { door: null }, after_seconds: 0.5 });
    await api.wait(thread_id, CHAIN);
    const begun = async () => (await api.state(thread_id)).next?.includes("wait");
    await until("it has begun", begun);
    const database = await openOn(api.service.database);
    const lost = { status: "pending" as const, epoch: sql<number>`epoch + 1`, worker_id: null, lease_until: null };
    await database.write((tx) => tx.enqueue(tx.k.updateTable("runs").set(lost).where("run_id", "=", delayed.run_id)));
    const rowOf = (tx: Tx) => tx.first(tx.k.selectFrom("runs").selectAll().where("run_id", "=", delayed.run_id));
    await until("it is claimed again", async () => (await rowOf(database.read))?.status === "running");
    await database.close();
    await until("it has begun again", begun);
    await api.cancel(delayed, ROLLBACK);
    expect(await api.thread(thread_id)).toMatchObject({ status: "idle", metadata: { graph_id: "chain" } });
  });

  it("keeps concurrent changes of others in the thread's metadata", async () => {
    const thread_id = await api.newThread();
    await api.wait(thread_id, CHAIN);
    const run = await api.runningSlow(thread_id);
    await api.call("PATCH", `/threads/${thread_id}`, { metadata: { color: "blue" } });
    await api.cancel(run, ROLLBACK);
    const { metadata } = await api.thread(thread_id);
    expect(metadata).toMatchObject({ graph_id: "chain", color: "blue" });
  });

  describe("as the strategy of a new run", () => {
    const over = { ...CHAIN, input: { steps: ["over"] }, multitask_strategy: "rollback" };

    it("undoes the running run and those that wait", async () => {
      const thread_id = await api.newThread();
      await api.wait(thread_id, CHAIN);
      const running = await api.runningSlow(thread_id);
      const waiting = await api.newRun(thread_id, CHAIN);
      const run = await api.newRun(thread_id, over);
      expect(run).toMatchObject({ status: "pending", multitask_strategy: "rollback" });
      expect((await api.join(run)).steps).toEqual(["in", "a", "b", "c", "over", "a", "b", "c"]);
      for (const deleted of [running, waiting]) {
        expect((await api.send("GET", `/threads/${thread_id}/runs/${deleted.run_id}`)).status).toBe(404);
        expect(await rowsOfRun(api.service.database, deleted.run_id)).toBe(0);
      }
      expect(await api.history(thread_id)).toHaveLength(10);
      expect(await api.thread(thread_id)).toMatchObject({ status: "idle", metadata: { graph_id: "chain" } });
    });

    it("ends a run that begins at a checkpoint of the run that is undone, and the state stays", async () => {
      const thread_id = await api.newThread();
      await api.wait(thread_id, CHAIN);
      await api.runningSlow(thread_id);
      const [{ checkpoint }] = await api.history(thread_id);
      const { checkpoint_id } = checkpoint;
      const run = await api.newRun(thread_id, { ...over, checkpoint: { checkpoint_id } });
      expect((await api.join(run)).__error__).toMatchObject({
        error: "CheckpointNotFoundError",
        message: expect.stringContaining(checkpoint_id),
      });
      expect(await api.thread(thread_id)).toMatchObject({ status: "idle", values: { steps: ["in", "a", "b", "c"] } });
      expect((await api.state(thread_id)).values.steps).toHaveLength(4);
    });

    it("over one that only waits leaves the thread as if that run had never existed", async () => {
      const thread_id = await api.newThread();
      const before = await picture(thread_id);
      await api.newRun(thread_id, { assistant_id: "slow", input: {}, after_seconds: 3600 });
      const run = await api.newRun(thread_id, { ...over, after_seconds: 3600 });
      expect((await api.thread(thread_id)).metadata.graph_id).toBe("chain");
      await api.cancel(run, ROLLBACK);
      expect((await api.thread(thread_id)).metadata).toEqual(before.thread.metadata);
    });

    it("keeps the last of many concurrent ones", async () => {
      const thread_id = await api.newThread();
      await api.runningSlow(thread_id);
      const runs: Wire[] = await Promise.all(Array.from({ length: 5 }, () => api.newRun(thread_id, over)));
      const ends = await Promise.all(
        runs.map(({ run_id }) => api.send("GET", `/threads/${thread_id}/runs/${run_id}/join`)),
      );
      const kept = ends.filter(({ status }) => status === 200);
      expect(kept.length).toBeGreaterThan(0);
      const left: Wire[] = await api.get(`/threads/${thread_id}/runs`);
      expect(left.length).toBe(kept.length);
      expect((await api.thread(thread_id)).values.steps).toHaveLength(4 * kept.length);
      expect((await api.thread(thread_id)).status).toBe("idle");
    });
  });
});
