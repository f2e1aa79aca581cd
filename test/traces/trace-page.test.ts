import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tracePageOperations } from "../../src/experiments/traces/trace-pages.ts";
import { closedService, newCaller, newWorkspace } from "../http/callers.ts";
import type { Scenario } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { openOn } from "../support/storage.ts";
import { run, TraceClient } from "./trace-client.ts";

const encoded = (cursor: unknown) => Buffer.from(JSON.stringify(cursor)).toString("base64url");
const ids = (runs: { id: string }[]) => runs.map(({ id }) => id);

describe.each(databases)("the runs of a trace for its page, on %s", (database) => {
  let api: Scenario;
  let headers: Record<string, string>;
  let client: TraceClient;
  beforeAll(async () => {
    api = await closedService(database);
    headers = await newCaller(api, { tenant_id: await newWorkspace(api) });
    client = new TraceClient(api.service, headers);
  });
  afterAll(() => api.stop());

  const request = (method: string, path: string, body?: unknown, as = headers) =>
    api.service.request(method, `/app/api/traces${path}`, body, as);
  const trace = async (id: string, after?: string) =>
    (await request("GET", `/${id}${after ? `?after=${encodeURIComponent(after)}` : ""}`)).body;
  const list = async (body: object) => (await request("POST", "/query", body)).body;

  it("are read in pages of 5,000, each run once", async () => {
    const root = run();
    const children = Array.from({ length: 5_004 }, (_, at) => run({ parent: root, at }));
    for (let from = 0; from < children.length; from += 1_000)
      expect((await client.post(root, ...children.slice(from, from + 1_000))).status).toBe(202);
    const first = await trace(root.id);
    expect([first.runs.length, first.next]).toEqual([5_000, first.runs.at(-1).dotted_order]);
    const second = await trace(root.id, first.next);
    expect([second.runs.length, second.next]).toEqual([5, null]);
    const orders = [root, ...children].map(({ dotted_order }) => dotted_order).sort();
    expect([...first.runs, ...second.runs].map(({ dotted_order }) => dotted_order)).toEqual(orders);
  });

  it("are summed by assistant and time", async () => {
    const stranger = new TraceClient(api.service, await newCaller(api, { tenant_id: await newWorkspace(api) }));
    const headers = await newCaller(api, { tenant_id: await newWorkspace(api) });
    const own = new TraceClient(api.service, headers);
    const [one, two] = [randomUUID(), randomUUID()];
    const HOUR = 3_600_000;
    /** A trace whose model used tokens. It ends a second after `at`. */
    const trace = (at: number, input_tokens: number, assistant_id?: string, more: object = {}) => {
      const root = run({ at, extra: { metadata: { assistant_id, ...more } } });
      const usage_metadata = { input_tokens, output_tokens: 1, total_cost: input_tokens / 100 };
      return [root, run({ at, parent: root, run_type: "llm", extra: { metadata: { usage_metadata, assistant_id } } })];
    };
    const traces = [
      ...[trace(0, 10, one), trace(1, 20, two), trace(HOUR - 500, 30, one), trace(-500, 40, one), trace(5, 50)],
      ...[trace(3 * HOUR, 60, one), trace(-2 * HOUR, 70, one), trace(6, 80, one, { deployment_id: randomUUID() })],
    ];
    const pending = run({ at: 7, end_time: undefined, outputs: undefined, extra: { metadata: { assistant_id: one } } });
    await own.post(...traces.flat(), pending);
    await stranger.post(...trace(0, 90, one));
    const noon = Date.UTC(2026, 0, 31, 12);
    const at = (ms: number) => new Date(noon + ms).toISOString();
    const query = { from: at(-HOUR), until: at(2 * HOUR), bucket_ms: HOUR };
    const usage = async (body: object) => (await request("POST", "/usage", { ...query, ...body }, headers)).body;
    const sums = (tokens: number, traces: number) => ({
      total_tokens: tokens + traces,
      completion_tokens: traces,
      total_cost: tokens / 100,
    });
    const bucket = (ms: number, tokens: number, traces: number) => ({
      at: at(ms).replace("Z", "+00:00"),
      ...sums(tokens, traces),
    });
    expect(await usage({})).toEqual({
      total: sums(100, 4),
      buckets: [bucket(0, 70, 3), bucket(HOUR, 30, 1)],
      assistants: [
        { assistant_id: one, ...sums(80, 3) },
        { assistant_id: two, ...sums(20, 1) },
      ],
      incomplete_until: null,
    });
    expect(await usage({ assistant_id: two })).toMatchObject({ total: sums(20, 1), buckets: [bucket(0, 20, 1)] });
    expect(await usage({ from: at(4 * HOUR), until: at(5 * HOUR) })).toEqual({
      total: { total_tokens: null, completion_tokens: null, total_cost: null },
      buckets: [],
      assistants: [],
      incomplete_until: null,
    });
    const status = async (body: object) => (await request("POST", "/usage", { ...query, ...body }, headers)).status;
    expect([await status({ bucket_ms: 60_000 }), await status({ until: at(-HOUR) })]).toEqual([422, 422]);
    // Only the traces that started last are read, if there are more than the limit.
    const storage = openOn(api.service.database, "experiments.db");
    const { tenant_id } = (await api.call("GET", "/app/api/session", undefined, headers)) as { tenant_id: string };
    const [from, until] = [query.from, query.until].map((time) => Date.parse(time) * 1000) as [number, number];
    const caller = { tenant_id, user_id: "local", scopes: [] };
    const cut = await tracePageOperations(storage).usage(caller, { from, until, bucket_ms: HOUR }, 2);
    expect(cut).toMatchObject({ total: sums(30, 1), incomplete_until: at(7).replace("Z", "+00:00") });
    await storage.close();
  });

  it("are in the order of the tree, with what a row shows and without payloads", async () => {
    const root = run({ name: "agent", end_time: undefined, outputs: undefined });
    const model = run({
      parent: root,
      at: 200,
      name: "gpt",
      run_type: "llm",
      tags: ["t"],
      extra: { metadata: { langgraph_node: "call", usage_metadata: { input_tokens: 3, output_tokens: 4 } } },
      events: [{ name: "new_token", time: "2026-01-31T12:00:00.500Z" }],
    });
    const tool = run({ parent: root, at: 100, run_type: "tool", error: "boom\n  at line 1" });
    const nested = run({ parent: tool, at: 150 });
    await client.post(model, nested, root, tool);
    const found = await trace(root.id);
    expect(found).toMatchObject({ trace_id: root.id, status: "pending", next: null });
    expect(found.session_id).toBe((await client.read(root.id)).session_id);
    expect(ids(found.runs)).toEqual(ids([root, tool, nested, model]));
    expect(found.runs[1]).toMatchObject({ status: "error", error: "boom", parent_run_id: root.id });
    expect(found.runs[3]).toEqual({
      id: model.id,
      parent_run_id: root.id,
      dotted_order: model.dotted_order,
      name: "gpt",
      run_type: "llm",
      status: "success",
      start_time: "2026-01-31T12:00:00.200+00:00",
      end_time: "2026-01-31T12:00:01.200+00:00",
      first_token_time: "2026-01-31T12:00:00.500+00:00",
      error: null,
      total_tokens: 7,
      total_cost: null,
      tags: ["t"],
      langgraph_node: "call",
    });
    expect(ids((await trace(root.id, tool.dotted_order)).runs)).toEqual(ids([nested, model]));
    expect((await trace(root.id, "\uFFFF\0")).runs).toEqual([]);
  });

  it("have another version after each change, and the status of the root", async () => {
    const root = run({ end_time: undefined, session_name: "versions" });
    await client.post(root);
    const versions = [(await trace(root.id)).version];
    expect((await trace(root.id)).version).toBe(versions[0]);
    await client.json("PATCH", `/runs/${root.id}`, { outputs: { answer: 1 } });
    versions.push((await trace(root.id)).version);
    await client.json("PATCH", `/runs/${root.id}`, { outputs: { answer: 2 } });
    versions.push((await trace(root.id)).version);
    await client.json("POST", "/feedback", { run_id: root.id, key: "k", score: 1 });
    versions.push((await trace(root.id)).version);
    await client.json("PATCH", `/runs/${root.id}`, { end_time: "2026-01-31T12:00:09Z", error: "failed" });
    const ended = await trace(root.id);
    expect(ended.status).toBe("error");
    expect(new Set([...versions, ended.version]).size).toBe(5);
  });

  it("are 404 in another workspace, and for the id of a child", async () => {
    const root = run();
    const child = run({ parent: root });
    await client.post(root, child);
    const stranger = await newCaller(api, { tenant_id: await newWorkspace(api) });
    const { session_id } = await client.read(root.id);
    for (const [id, as] of [
      [root.id, stranger],
      [child.id, headers],
      [randomUUID(), headers],
    ] as const)
      expect(await request("GET", `/${id}`, undefined, as)).toMatchObject({
        status: 404,
        body: { detail: "Trace not found" },
      });
    expect((await request("POST", "/query", { id: [root.id] }, stranger)).body.runs).toEqual([]);
    // Clients choose the ids of traces.
    const before = await trace(root.id);
    await new TraceClient(api.service, stranger).post(run({ id: root.id, name: "stranger", error: "x" }), child);
    expect(await trace(root.id)).toEqual(before);
    expect((await request("GET", `/${root.id}`, undefined, stranger)).body).toMatchObject({
      status: "error",
      runs: [{}, {}],
    });
    expect((await request("POST", "/query", { session_id }, stranger)).status).toBe(404);
  });

  it("are listed newest first, or by latency, tokens and cost, in pages without gaps", async () => {
    const usage = (cost: number) => ({
      usage_metadata: { input_tokens: cost * 10, output_tokens: 0, total_cost: cost },
    });
    const runs = [3, 1, 2, 5, 4].map((n, index) =>
      run({
        at: index * 10,
        end_time: new Date(Date.UTC(2026, 0, 31, 12, 0, n)).toISOString(),
        run_type: "llm",
        session_name: "sorted",
        extra: { metadata: usage(6 - n) },
        name: `run ${n}`,
      }),
    );
    const pending = run({ at: 60, end_time: undefined, session_name: "sorted", name: "run p" });
    const child = run({ at: 70, parent: pending, session_name: "sorted", name: "child" });
    await client.post(...runs, pending, child);
    const { id: session_id } = await client.session("sorted");
    const names = async (body: object) => {
      const found: string[] = [];
      for (let cursor: string | undefined; ; ) {
        const page = await list({ session_id, is_root: true, limit: 4, cursor, ...body });
        found.push(...page.runs.map(({ name }: { name: string }) => name.replace("run ", "")));
        if (page.next === null) return found.join("");
        cursor = page.next;
      }
    };
    expect(await names({})).toBe("p45213");
    expect(await names({ descending: false })).toBe("31254p");
    expect(await names({ order_by: "latency" })).toBe("54321p");
    expect(await names({ order_by: "total_tokens" })).toBe("12345p");
    expect(await names({ order_by: "total_cost", descending: false })).toBe("p54321");
    expect(await names({ filter: "gt(latency, 2.5)", query: "run" })).toBe("453");
    expect(await names({ is_root: undefined, filter: 'eq(run_type, "chain")' })).toBe("childp");
    expect((await request("POST", "/query", { session_id, filter: "eq(" })).status).toBe(400);
    const id = randomUUID();
    for (const cursor of ["x", ...[[1.5, id], [1, "\0"], [1e300, id], ["1", id], null].map(encoded)])
      expect((await request("POST", "/query", { session_id, cursor })).status).toBe(400);
    const byCost = { session_id, order_by: "total_cost", cursor: encoded([0.5, id]) };
    expect((await request("POST", "/query", byCost)).status).toBe(200);
  });

  it("are listed with previews, their project and the feedback on them", async () => {
    const root = run({ inputs: { q: "why" }, outputs: { a: "so" }, extra: { metadata: { thread_id: "t-1" } } });
    await client.post(root);
    await client.json("POST", "/feedback", { run_id: root.id, key: "correct", score: 1 });
    const { runs } = await list({ id: [root.id] });
    expect(runs).toMatchObject([
      { id: root.id, trace_id: root.id, thread_id: "t-1", feedback_stats: { correct: { n: 1, avg: 1 } } },
    ]);
    expect(runs[0].inputs_preview).toContain("why");
    expect(runs[0].outputs_preview).toContain("so");
    expect(runs[0]).not.toHaveProperty("inputs");
  });

  it("are listed with the text of the last message, or the tools that it calls", async () => {
    const lc = (name: string, kwargs: object) => ({ lc: 1, type: "constructor", id: ["messages", name], kwargs });
    const call = { id: "c", name: "search", args: {} };
    const openai = {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c", function: { name: "add", arguments: "{}" } }],
    };
    const cases: [payload: object, preview: string][] = [
      [{ messages: [[lc("SystemMessage", { content: "short" }), lc("HumanMessage", { content: "Why?" })]] }, "Why?"],
      [{ messages: [{ role: "user", content: [{ type: "text", text: "a" }, { type: "image_url" }] }] }, "a"],
      [{ generations: [[{ text: "", message: lc("AIMessage", { content: "", tool_calls: [call] }) }]] }, "search"],
      [{ choices: [{ index: 0, message: openai }] }, "add"],
      [{ role: "assistant", parts: [{ type: "text", content: "So." }] }, "So."],
      [{ messages: [], question: "Why?" }, "Why?"],
      [{ messages: [[[[[[[[[["deep"]]]]]]]]]] }, '{"messages":[[[[[[[[[["deep"]]]]]]]]]]}'],
      [{ messages: [{ role: "user", content: "x".repeat(1_000) }] }, `${"x".repeat(200)}…`],
    ];
    const runs = cases.map(([payload], index) => run({ at: index, inputs: payload, outputs: payload }));
    await client.post(...runs);
    const found = new Map((await list({ id: ids(runs) })).runs.map((each: { id: string }) => [each.id, each]));
    for (const [index, [, preview]] of cases.entries())
      expect(found.get(runs[index]?.id)).toMatchObject({ inputs_preview: preview, outputs_preview: preview });
  });
});
