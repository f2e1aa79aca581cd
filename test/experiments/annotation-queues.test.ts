import { randomUUID } from "node:crypto";
import { Client } from "langsmith";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listed } from "../compat/langsmith/support.ts";
import { Scenario, UNKNOWN_ID, type Wire } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { run, type TestRun, TraceClient } from "../traces/trace-client.ts";
import { experimentOf } from "./experiment.ts";

const API = "/api/v1/annotation-queues";

describe.each(databases)("annotation queues on %s", (database) => {
  let api: Scenario;
  let client: Client;
  let traces: TraceClient;
  beforeAll(async () => {
    api = await Scenario.start(database);
    traces = new TraceClient(api.service);
    client = new Client({
      apiUrl: `${await api.service.listen()}/api/v1`,
      apiKey: "any",
      callerOptions: { maxRetries: 0 },
    });
  });
  afterAll(() => api.stop());

  /** Stores runs, a second apart. */
  async function stored(count: number, fields: Record<string, unknown> = {}): Promise<TestRun[]> {
    const runs = Array.from({ length: count }, (_, index) => run({ at: index * 1000, ...fields }));
    await traces.post(...runs);
    return runs;
  }

  const idsOf = (runs: { id: string }[]) => runs.map(({ id }) => id);
  const queueRuns = async (queue_id: string, status?: "needs_my_review" | "completed") =>
    listed(client.listRunsFromAnnotationQueue(queue_id, status ? { status } : {}));

  it("keep their name, description and rubric with the feedback configs of its keys", async () => {
    await client.createFeedbackConfig({ feedbackKey: "tone", feedbackConfig: { type: "continuous", min: 0, max: 1 } });
    const rubricItems = [
      { feedback_key: "tone", description: "How it sounds", score_descriptions: { "0": "cold" }, is_required: true },
      { feedback_key: "plain" },
    ];
    const created = await client.createAnnotationQueue({
      name: "tones",
      rubricInstructions: "Read twice.",
      rubricItems,
    });
    const read = await client.readAnnotationQueue(created.id);
    expect(read).toMatchObject({ name: "tones", description: null, rubric_instructions: "Read twice." });
    expect(read.rubric_items).toMatchObject([
      { ...rubricItems[0], feedback_config: { feedback_key: "tone", feedback_config: { type: "continuous", max: 1 } } },
      { feedback_key: "plain", feedback_config: null },
    ]);
    await client.updateAnnotationQueue(created.id, { name: "sounds", description: "New", rubricItems: [] });
    expect(await client.readAnnotationQueue(created.id)).toMatchObject({
      name: "sounds",
      description: "New",
      rubric_instructions: "Read twice.",
      rubric_items: [],
    });
  });

  it("are listed by ids, names and default dataset with the number of their runs, and deleted", async () => {
    const word = randomUUID();
    const dataset = await client.createDataset(word);
    const one = await client.createAnnotationQueue({ name: `${word} one` });
    const two = await api.post(API, { name: `${word} two`, default_dataset: dataset.id, metadata: { a: 1 } });
    await client.addRunsToAnnotationQueue(one.id, idsOf(await stored(3)));
    const found = async (query: string): Promise<Wire[]> => api.get(`${API}?sort_by=name&sort_by_desc=false&${query}`);
    const both = await found(`name_contains=${word.toUpperCase()}`);
    expect(both).toMatchObject([
      { id: one.id, total_runs: 3 },
      { id: two.id, total_runs: 0, default_dataset: dataset.id, metadata: { a: 1 } },
    ]);
    await api.post(`${API}/status/${(await queueRuns(one.id))[1].queue_run_id}`, { status: "completed" });
    expect(await api.get(`/app/api/annotation-queues?sort_by=name&name_contains=${word}`)).toMatchObject([
      { id: two.id, items: { needs_my_review: 0, needs_others_review: 0, archived: 0 } },
      { id: one.id, items: { needs_my_review: 2, needs_others_review: 0, archived: 1 } },
    ]);
    expect(idsOf(await found(`dataset_id=${dataset.id}`))).toEqual([two.id]);
    expect(idsOf(await listed(client.listAnnotationQueues({ queueIds: [one.id, UNKNOWN_ID] })))).toEqual([one.id]);
    expect(idsOf(await listed(client.listAnnotationQueues({ name: `${word} one` })))).toEqual([one.id]);
    await client.deleteAnnotationQueue(one.id);
    await expect(client.readAnnotationQueue(one.id)).rejects.toThrow(/not found/);
    expect(idsOf(await found(`name_contains=${word}`))).toEqual([two.id]);
    expect((await api.send("POST", API, { id: two.id, name: "again" })).status).toBe(409);
    expect((await api.send("PATCH", `${API}/${two.id}`, { default_dataset: UNKNOWN_ID })).status).toBe(404);
    await client.deleteDataset({ datasetId: dataset.id });
    expect(await api.get(`${API}/${two.id}`)).toMatchObject({ default_dataset: null });
  });

  it("contain each run once, in the order in which they were added", async () => {
    const queue = await client.createAnnotationQueue({ name: "ordered" });
    const [a, b, c] = (await stored(3)) as [TestRun, TestRun, TestRun];
    await client.addRunsToAnnotationQueue(queue.id, [c.id, a.id]);
    const session = await traces.session("traces");
    await client.addRunsToAnnotationQueue(queue.id, [
      { runId: a.id, sessionId: session.id, startTime: a.start_time },
      { runId: b.id, sessionId: session.id, startTime: b.start_time },
    ]);
    const runs = await queueRuns(queue.id);
    expect(idsOf(runs)).toEqual([c.id, a.id, b.id]);
    expect(runs[0]).toMatchObject({
      name: "run",
      inputs: { question: "?" },
      completed_by: [],
      last_reviewed_time: null,
    });
    expect(await client.getRunFromAnnotationQueue(queue.id, 1)).toMatchObject({ id: a.id, outputs: { answer: "!" } });
    await expect(client.getRunFromAnnotationQueue(queue.id, 3)).rejects.toThrow(/not found/);
    expect(await client.getSizeFromAnnotationQueue(queue.id)).toEqual({ size: 3 });
    expect(await api.get(`${API}/${a.id}/queues`)).toMatchObject([{ id: queue.id }]);

    await client.deleteRunFromAnnotationQueue(queue.id, runs[0].queue_run_id);
    await client.deleteRunFromAnnotationQueue(queue.id, b.id);
    await expect(client.deleteRunFromAnnotationQueue(queue.id, b.id)).rejects.toThrow(/not found/);
    expect(idsOf(await queueRuns(queue.id))).toEqual([a.id]);
    expect((await traces.read(b.id)).id).toBe(b.id);
  });

  it("refuse runs that are not stored, and then add none", async () => {
    const queue = await client.createAnnotationQueue({ name: "strict" });
    const [known] = idsOf(await stored(1)) as [string];
    await expect(client.addRunsToAnnotationQueue(queue.id, [known, UNKNOWN_ID])).rejects.toThrow(
      `${UNKNOWN_ID} not found`,
    );
    expect(await client.getSizeFromAnnotationQueue(queue.id)).toEqual({ size: 0 });
    for (const body of [{}, [1], [{ run_id: "x" }], [null]])
      expect((await api.send("POST", `${API}/${queue.id}/runs`, body)).status).toBe(422);
    expect((await api.send("GET", `${API}/${queue.id}/run/-1`)).status).toBe(422);
    for (const body of [{ name: "" }, { name: "q", enable_reservations: true }, { name: "q", rubric_items: [{}] }])
      expect((await api.send("POST", API, body)).status).toBe(422);
  });

  it("lose runs that are deleted with their session, including uploaded ones", async () => {
    const { experiment } = await api.post(
      "/api/v1/datasets/upload-experiment",
      experimentOf(4, () => []),
    );
    const queue = await api.post(API, { name: "uploaded", session_ids: [experiment.id] });
    const [traced] = (await stored(1, { session_name: `deleted ${queue.id}` })) as [TestRun];
    await client.addRunsToAnnotationQueue(queue.id, [traced.id]);
    const runs = await queueRuns(queue.id);
    expect(runs).toHaveLength(5);
    await api.post(`${API}/status/${runs[0].queue_run_id}`, { status: "completed" });
    await client.deleteProject({ projectId: experiment.id });
    expect(idsOf(await queueRuns(queue.id))).toEqual([traced.id]);
    await client.deleteProject({ projectName: `deleted ${queue.id}` });
    expect(await api.get(`${API}/${queue.id}/total_size`)).toEqual({ size: 0 });
    // The run with the same id that arrives later is another run.
    await traces.post(traced);
    expect(await api.get(`${API}/${queue.id}/total_size`)).toEqual({ size: 0 });
  });

  it("add the roots of sessions, and remove runs by list and all at once", async () => {
    const name = `populated ${randomUUID()}`;
    const roots = await stored(4, { session_name: name });
    await traces.post(run({ parent: roots[0] as TestRun, session_name: name }));
    const session = await traces.session(name);
    const queue = await client.createAnnotationQueue({ name });
    await client.addRunsToAnnotationQueue(queue.id, [roots[2]?.id as string]);
    const body = { queue_id: queue.id, session_ids: [session.id] };
    expect(await client.annotationQueues.populate(body)).toEqual({ added: 3 });
    expect(idsOf(await queueRuns(queue.id))).toEqual([2, 0, 1, 3].map((index) => roots[index]?.id));
    await client.annotationQueues.runs.deleteAll(queue.id, { run_ids: [roots[0]?.id as string] });
    expect(await client.annotationQueues.retrieveTotalSize(queue.id)).toEqual({ size: 3 });
    await client.annotationQueues.runs.deleteAll(queue.id, {
      delete_all: true,
      exclude_run_ids: [roots[1]?.id as string],
    });
    expect(idsOf(await queueRuns(queue.id))).toEqual([roots[1]?.id]);
    expect((await api.send("POST", `${API}/populate`, { ...body, session_ids: [UNKNOWN_ID] })).status).toBe(404);
  });

  it("page through items with a cursor that stays valid while items are reviewed", async () => {
    const queue = await client.createAnnotationQueue({ name: "paged" });
    const runs = await stored(5);
    const items = runs.map(({ id }) => ({ item_type: "RUN" as const, run_id: id }));
    const { items: added } = await client.annotationQueues.items.create(queue.id, { items });
    expect(added?.map(({ run_id }) => run_id)).toEqual(idsOf(runs));
    const first = await client.annotationQueues.items.list(queue.id, { status: "needs_my_review", page_size: 2 });
    await client.annotationQueues.items.createStatus(added?.[0]?.id as string, { status: "completed" });
    const rest = [];
    for (let page = first; page.hasNextPage(); ) {
      page = await page.getNextPage();
      rest.push(...page.items);
    }
    expect(rest.map(({ run_id }) => run_id)).toEqual(idsOf(runs.slice(2)));
    const last = added?.[4]?.id as string;
    const place = () => client.annotationQueues.items.retrievePlacement(last, { queue_id: queue.id });
    expect(await place()).toMatchObject({ section: "needs_my_review", position: 3 });
    await client.annotationQueues.items.createStatus(last, { override_added_at: "2020-01-01T00:00:00Z" });
    expect(await place()).toMatchObject({ section: "needs_my_review", position: 0 });
    const time = "2021-01-01T00:00:00.000+00:00";
    const changed = await client.annotationQueues.items.update(last, { queue_id: queue.id, last_reviewed_time: time });
    expect(changed).toMatchObject({ last_reviewed_time: time, added_at: added?.[4]?.added_at });
    await client.annotationQueues.items.deleteAll(queue.id, { item_ids: [last] });
    expect(await client.annotationQueues.items.retrieveCount(queue.id, { status: "all" })).toEqual({ count: 4 });
    expect(
      (await api.send("GET", `/api/v1/platform/annotation-queues/${queue.id}/items?status=archived&cursor=x`)).status,
    ).toBe(400);
    const thread = { items: [{ item_type: "THREAD", thread_id: "t" }] };
    expect((await api.send("POST", `/api/v1/platform/annotation-queues/${queue.id}/items`, thread)).status).toBe(422);
  });
});
