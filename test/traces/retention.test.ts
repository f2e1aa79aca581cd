import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { until } from "../support/until.ts";
import { run, type TestRun, TraceClient } from "./trace-client.ts";

/** The runs of the client start in the past, before any of them could be kept for 14 days. */
const NOW_MS = Date.now() - Date.UTC(2026, 0, 31, 12);
const DAY_MS = 86_400_000;

describe.each(databases)("traces that expire on %s", (database) => {
  let service: TestService;
  let client: TraceClient;
  beforeAll(async () => {
    service = await startService({
      database,
      config: "examples/langgraph.json",
      env: { API_KEYS: "" },
      intervals: { trace_sweep_ms: 100 },
    });
    client = new TraceClient(service);
  });
  afterAll(() => service.stop());

  const post = async (path: string, body: object) => {
    const answer = await client.json("POST", path, body);
    expect([answer.status, answer.body]).toEqual([200, answer.body]);
    return answer.body;
  };
  const project = (trace_tier?: string) => post("/sessions", { name: randomUUID(), trace_tier });
  const expire = (id: string) => client.json("PATCH", `/sessions/${id}`, { trace_tier: "shortlived" });
  const isThere = async ({ id }: TestRun) => (await client.get(`/runs/${id}`)).status === 200;
  const deletionOf = (traced: TestRun) => until("the trace is deleted", async () => !(await isThere(traced)));

  it("are deleted as a whole after 14 days, and leave the statistics", async () => {
    const { id, name } = await project("shortlived");
    const fresh = run({ session_name: name, at: NOW_MS - 13.9 * DAY_MS });
    await client.post(fresh);
    const root = run({ session_name: name, at: NOW_MS - 14.1 * DAY_MS });
    const late = run({ session_name: name, parent: root, at: NOW_MS });
    await client.post(late);
    await client.post(root);
    await deletionOf(root);
    expect(await isThere(late)).toBe(false);
    expect(await isThere(fresh)).toBe(true);
    expect(await client.session(name)).toMatchObject({ id, trace_tier: "shortlived", run_count: 1 });
  });

  it("are deleted when their project becomes one that expires, and stay in others", async () => {
    const [first, second] = [await project(), await project("longlived")];
    const roots = [first, second].map(({ name }) => run({ session_name: name }));
    await client.post(...roots);
    expect(first.trace_tier).toBe("longlived");
    await expire(first.id);
    await deletionOf(roots[0] as TestRun);
    expect(await isThere(roots[1] as TestRun)).toBe(true);
  });

  it("stay with feedback or a share", async () => {
    const { id, name } = await project();
    const [rated, shared, plain, noted] = [0, 1, 2, 3].map((at) => run({ session_name: name, at })) as [
      TestRun,
      TestRun,
      TestRun,
      TestRun,
    ];
    const [ratedChild, sharedChild] = [rated, shared].map((parent) => run({ session_name: name, parent, at: 10 })) as [
      TestRun,
      TestRun,
    ];
    await client.post(rated, shared, plain, noted, ratedChild, sharedChild);
    await post("/feedback", { run_id: ratedChild.id, key: "good", score: 1 });
    const note = await post("/feedback", { run_id: noted.id, key: "seen", score: 1, extend_trace_retention: false });
    await client.json("PUT", `/runs/${sharedChild.id}/share`, {});
    await expire(id);
    await deletionOf(plain);
    await deletionOf(noted);
    for (const kept of [rated, ratedChild, shared, sharedChild]) expect(await isThere(kept)).toBe(true);
    expect((await client.get(`/feedback/${note.id}`)).status).toBe(404);
    expect(await client.session(name)).toMatchObject({ run_count: 2, feedback_stats: { good: { n: 1 } } });
    expect((await client.session(name)).feedback_stats.seen).toBeUndefined();

    await client.send("DELETE", `/runs/${sharedChild.id}/share`, "");
    await deletionOf(shared);
  });

  it("stay while one of their runs is in an annotation queue", async () => {
    const { id, name } = await project();
    const [queued, plain] = [run({ session_name: name }), run({ session_name: name })];
    await client.post(queued, plain);
    const queue = await post("/annotation-queues", { name: randomUUID() });
    await post(`/annotation-queues/${queue.id}/runs`, [queued.id]);
    await expire(id);
    await deletionOf(plain);
    expect(await isThere(queued)).toBe(true);
    expect((await client.send("DELETE", `/annotation-queues/${queue.id}`, "")).status).toBe(200);
    await deletionOf(queued);
  });

  it("include runs whose root never arrived", async () => {
    const { id, name } = await project();
    const orphan = run({ session_name: name, parent: run() });
    await client.post(orphan);
    await expire(id);
    await deletionOf(orphan);
  });

  it("include those without a root past many that stay", async () => {
    const { id, name } = await project();
    const orphan = (trace_id: string = randomUUID()) =>
      run({ session_name: name, parent: run({ id: trace_id }), inputs: {}, outputs: {} });
    const queued = Array.from({ length: 201 }, () => orphan());
    const last = orphan(`ffffffff-${randomUUID().slice(9)}`);
    await client.post(...queued, last);
    const queue = await post("/annotation-queues", { name: randomUUID() });
    await post(
      `/annotation-queues/${queue.id}/runs`,
      queued.map((each) => each.id),
    );
    await expire(id);
    await deletionOf(last);
    expect(await isThere(queued[0] as TestRun)).toBe(true);
  });

  it("do not include those of an experiment", async () => {
    const dataset = await post("/datasets", { name: randomUUID() });
    const body = { name: randomUUID(), reference_dataset_id: dataset.id };
    expect((await client.json("POST", "/sessions", { ...body, trace_tier: "shortlived" })).status).toBe(400);
    const session = await post("/sessions", body);
    expect((await expire(session.id)).status).toBe(400);
    expect((await client.json("PATCH", `/sessions/${session.id}`, { trace_tier: "soon" })).status).toBe(422);
  });

  it("are deleted in several steps, past those that stay", async () => {
    const { id, name } = await project();
    const roots = Array.from({ length: 450 }, (_, at) => run({ session_name: name, at, inputs: {}, outputs: {} }));
    await client.post(...roots);
    for (const { id: run_id } of roots.slice(0, 3)) await post("/feedback", { run_id, key: "k", score: 1 });
    await expire(id);
    await until("the rest is deleted", async () => (await client.session(name)).run_count === 3);
    expect(await Promise.all(roots.slice(0, 3).map(isThere))).toEqual([true, true, true]);
  });
});
