import { randomUUID } from "node:crypto";
import { Client } from "langsmith";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closedService, newCaller, newWorkspace } from "../http/callers.ts";
import type { Scenario } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { run, type TestRun, TraceClient } from "./trace-client.ts";

const EPOCH = new Date(0);

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

describe.each(databases)("the threads of a project on %s", (database) => {
  let api: Scenario;
  let own: TraceClient;
  let theirs: { "X-Api-Key": string };
  let stranger: TraceClient;
  let client: Client;
  let project: { id: string; name: string };
  let turns: [TestRun, TestRun, TestRun];
  let other: TestRun;
  let model: TestRun;
  beforeAll(async () => {
    api = await closedService(database);
    const key = await newCaller(api, { tenant_id: await newWorkspace(api) });
    own = new TraceClient(api.service, key);
    theirs = await newCaller(api, { tenant_id: await newWorkspace(api) });
    stranger = new TraceClient(api.service, theirs);
    client = new Client({ apiUrl: `${await api.service.listen()}/api/v1`, apiKey: key["X-Api-Key"] });

    const name = randomUUID();
    const turn = (at: number, thread: object, fields = {}) =>
      run({ session_name: name, at, extra: { metadata: thread }, ...fields });
    turns = [
      turn(0, { thread_id: "a" }, { inputs: { question: "first?" } }),
      turn(10_000, { session_id: "a", thread_id: "b" }, { error: "broken", outputs: undefined }),
      turn(20_000, { conversation_id: "a" }, { outputs: { answer: "last!" }, tags: ["late"] }),
    ];
    other = turn(30_000, { thread_id: "other" });
    model = run({
      session_name: name,
      parent: turns[0],
      at: 1,
      run_type: "llm",
      extra: { metadata: { ls_model_name: "gpt-4o" } },
      outputs: {
        usage_metadata: {
          input_tokens: 5,
          output_tokens: 2,
          total_tokens: 7,
          total_cost: 0.5,
          input_token_details: { cache_read: 3 },
        },
      },
    });
    const wrapped = run({
      session_name: name,
      parent: model,
      at: 2,
      run_type: "llm",
      outputs: { usage_metadata: { input_tokens: 5, output_tokens: 2, input_token_details: { cache_read: 3 } } },
    });
    // The child comes before its root, whose thread it is in.
    await own.post(wrapped, model);
    await own.post(...turns, other, turn(40_000, {}));
    const { session_id } = await own.read(other.id);
    project = { id: session_id, name };
    await own.json("POST", "/feedback", { run_id: model.id, key: "good", score: 1 });
  });
  afterAll(() => api.stop());

  const group = async (body: object = {}, by = own) =>
    by.json("POST", "/runs/group", { session_id: project.id, group_by: "conversation", ...body });
  const named = async (filter: string, body = {}) =>
    (await own.query({ session: [project.id], filter, order: "asc", ...body })).map(({ id }: TestRun) => id);

  it("are those of the roots: the first of three keys of the metadata", async () => {
    for (const { id } of [...turns, model]) expect((await own.read(id)).thread_id).toBe("a");
    expect((await own.read(other.id)).thread_id).toBe("other");
    expect(await named('eq(thread_id, "a")', { is_root: true })).toEqual(turns.map(({ id }) => id));
    expect(await named('eq(thread_id, "b")')).toEqual([]);
    expect(await named('and(eq(thread_id, "a"), eq(run_type, "llm"))')).toHaveLength(2);
    expect(await named('in(thread_id, ["other", "b"])')).toEqual([other.id]);
    expect(await named('neq(thread_id, "a")')).toHaveLength(2);
  });

  it("change with the root, but not for runs that have a thread of their own", async () => {
    const root = run({ session_name: randomUUID() });
    const child = run({ session_name: root.session_name, parent: root });
    const apart = run({ session_name: root.session_name, parent: root, extra: { metadata: { thread_id: "apart" } } });
    await own.post(root, child, apart);
    expect((await own.read(child.id)).thread_id).toBeNull();
    await own.json("PATCH", `/runs/${root.id}`, { extra: { metadata: { thread_id: "late" } } });
    expect((await own.read(child.id)).thread_id).toBe("late");
    expect((await own.read(apart.id)).thread_id).toBe("apart");
  });

  it("are grouped, the newest first, in pages", async () => {
    const { body } = await group();
    expect(body.total).toBe(2);
    expect(body.groups.map(({ thread_id }: { thread_id: string }) => thread_id)).toEqual(["other", "a"]);
    expect(body.groups[1]).toEqual({
      thread_id: "a",
      filter: 'eq(thread_id, "a")',
      count: 3,
      total_tokens: 7,
      total_cost: 0.5,
      latency_p50: 1,
      latency_p99: 1,
      min_start_time: "2026-01-31T12:00:00.000+00:00",
      max_start_time: "2026-01-31T12:00:20.000+00:00",
      start_time: "2026-01-31T12:00:20.000+00:00",
      trace_id: turns[2].id,
      first_trace_id: turns[0].id,
      last_trace_id: turns[2].id,
      first_inputs: expect.stringContaining("first?"),
      last_outputs: expect.stringContaining("last!"),
      last_error: "broken",
      num_errored_turns: 1,
      feedback_stats: { good: expect.objectContaining({ n: 1, avg: 1 }) },
    });
    const second = (await group({ limit: 1, offset: 1 })).body;
    expect(second).toEqual({ groups: [body.groups[1]], total: 2 });
    expect((await group({ filter: 'has(tags, "late")' })).body).toMatchObject({ groups: [{ count: 1 }], total: 1 });
    expect((await group({ end_time: turns[0].start_time })).body.groups).toMatchObject([{ thread_id: "a", count: 1 }]);
  });

  it("are refused to other workspaces and with other keys", async () => {
    expect((await group({}, stranger)).status).toBe(404);
    expect((await group({ group_by: "user" })).status).toBe(422);
    expect((await group({ filter: "eq(" })).status).toBe(400);
    const body = { project_id: project.id };
    expect((await stranger.json("POST", "/api/v2/threads/query", body)).status).toBe(404);
    for (const path of [`traces?project_id=${project.id}`, `stats?session_id=${project.id}&selects=TURNS`])
      expect((await api.service.request("GET", `/api/v2/threads/a/${path}`, undefined, theirs)).status).toBe(404);
    expect((await own.json("POST", "/api/v2/threads/query", { ...body, thread_filter: "x" })).status).toBe(422);
    expect((await own.json("POST", "/api/v2/threads/query", { ...body, cursor: "x" })).status).toBe(400);
  });

  it("are listed and read by the JavaScript client", async () => {
    const groups = await all(client.listGroupRuns({ projectName: project.name, groupBy: "conversation" }));
    expect(groups.map(({ thread_id, count }) => [thread_id, count])).toEqual([
      ["other", 1],
      ["a", 3],
    ]);
    const runs = await all(client.readThread({ threadId: "a", projectId: project.id }));
    expect(runs.map(({ id }) => id)).toEqual(turns.map(({ id }) => id));
    const threads = await client.listThreads({ projectId: project.id, startTime: EPOCH });
    expect(threads.map(({ thread_id, count }) => [thread_id, count])).toEqual([
      ["other", 1],
      ["a", 3],
    ]);
  });

  it("are listed and read by version 2 of the client", async () => {
    const query = { project_id: project.id, page_size: 1 };
    const threads = await all(client.threads.query(query));
    expect(threads).toEqual((await group()).body.groups);
    const ofTree = client.threads.query({ ...query, tree_filter: 'eq(ls_model_name, "gpt-4o")' });
    expect((await all(ofTree)).map(({ thread_id, count }) => [thread_id, count])).toEqual([["a", 1]]);

    const selects = ["NAME", "OUTPUTS", "LATENCY"] as const;
    const page = { project_id: project.id, page_size: 2, selects: [...selects] };
    const traces = await all(client.threads.listTraces("a", page));
    expect(traces.map(({ trace_id }) => trace_id)).toEqual(turns.map(({ id }) => id));
    expect(traces[2]).toEqual({ trace_id: turns[2].id, name: "run", outputs: { answer: "last!" }, latency: 1 });

    const fields = [
      "TURNS",
      "FIRST_START_TIME",
      "LAST_END_TIME",
      "LATENCY_P50",
      "TOTAL_TOKENS",
      "FEEDBACK_STATS",
    ] as const;
    const details = ["PROMPT_TOKEN_DETAILS", "COMPLETION_COST_DETAILS"] as const;
    expect(await client.threads.stats("a", { session_id: project.id, selects: [...fields, ...details] })).toEqual({
      turns: 3,
      first_start_time: "2026-01-31T12:00:00.000+00:00",
      last_end_time: "2026-01-31T12:00:21.000+00:00",
      latency_p50_seconds: 1,
      total_tokens: 7,
      feedback_stats: { good: expect.objectContaining({ n: 1 }) },
      prompt_token_details: { raw: { cache_read: 3 } },
      completion_cost_details: { raw: {} },
    });
    const none = await client.threads.stats("nobody", { session_id: project.id, selects: ["TURNS", "LATENCY_P99"] });
    expect(none).toEqual({ turns: 0, latency_p99_seconds: null });
  });

  it("keep the parent that a run names, even if it never comes", async () => {
    const parent = run({ session_name: project.name, extra: { metadata: { thread_id: "orphans" } } });
    const orphan = run({ session_name: project.name, parent });
    await own.post(orphan);
    const children = await own.query({ session: [project.id], trace: parent.id, is_root: false });
    expect(children).toMatchObject([{ id: orphan.id, parent_run_id: parent.id, parent_run_ids: [parent.id] }]);
  });

  it.each([
    ["trace_filter", 'eq(thread_id, "a")', 5],
    ["trace_filter", 'eq(status, "error")', 1],
    ["tree_filter", 'eq(ls_model_name, "gpt-4o")', 3],
    ["tree_filter", "gt(total_cost, 0.4)", 3],
    ["tree_filter", "gt(total_tokens, 6.5)", 3],
    ["filter", 'eq(feedback_key, "good")', 1],
    ["filter", 'in(ls_model_name, ["gpt-4o", "x"])', 1],
    ["filter", "and(eq(is_root, true), gt(total_tokens, 6), lt(prompt_tokens, 6))", 1],
    ["filter", 'and(eq(is_root, true), eq(status, "success"), neq(thread_id, "a"))', 2],
  ])("are queried and counted with %s %s", async (name, expression, count) => {
    const body = { session: [project.id], end_time: "2026-01-31T13:00:00Z", [name]: expression };
    const scope = `and(neq(thread_id, "orphans"), not(eq(run_type, "none")))`;
    const whole = name === "filter" ? body : { ...body, filter: scope };
    expect(await own.query(whole)).toHaveLength(count);
    expect((await own.json("POST", "/runs/stats", whole)).body.run_count).toBe(count);
    const { session, end_time, ...filters } = whole as Record<string, unknown>;
    const v2 = { project_ids: session, max_start_time: end_time, ...filters };
    expect((await own.json("POST", "/api/v2/runs/query", v2)).body.items).toHaveLength(count);
  });
});
