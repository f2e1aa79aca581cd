import { randomUUID } from "node:crypto";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";

import { startService, type TestService } from "../support/service.ts";
import { multipart, partsOf, run, shuffled, type TestRun, TraceClient } from "./trace-client.ts";

const USAGE = { input_tokens: 1000, output_tokens: 100, total_tokens: 1100 };
const MODEL = { ls_provider: "openai", ls_model_name: "gpt-4o" };

/** A root with a tool, and a model below it that uses tokens. */
function tree(fields: Record<string, unknown> = {}): [root: TestRun, tool: TestRun, model: TestRun] {
  const root = run({ name: "agent", ...fields });
  const tool = run({ name: "search", run_type: "tool", at: 100, parent: root, ...fields });
  const model = run({
    name: "model",
    run_type: "llm",
    at: 200,
    parent: tool,
    outputs: { usage_metadata: USAGE },
    extra: { metadata: MODEL },
    events: [{ name: "new_token", time: "2026-01-31T12:00:00.500Z", kwargs: { token: "a" } }],
    ...fields,
  });
  return [root, tool, model];
}

describe.each(databases)("the ingestion of traces on %s", (database) => {
  let service: TestService;
  let client: TraceClient;
  beforeAll(async () => {
    service = await startService({ database, config: "examples/langgraph.json", env: { API_KEYS: "" } });
    client = new TraceClient(service);
  });
  afterAll(() => service.stop());

  it.each([undefined, "gzip", "zstd"] as const)(
    "stores a multipart body before the response (%s)",
    async (encoding) => {
      const [root, tool, model] = tree();
      expect((await client.sendParts(partsOf("post", [root, tool, model]), encoding)).status).toBe(202);
      expect(await client.read(root.id)).toMatchObject({
        name: "agent",
        run_type: "chain",
        status: "success",
        start_time: "2026-01-31T12:00:00.000+00:00",
        inputs: { question: "?" },
        outputs: { answer: "!" },
        parent_run_id: null,
        trace_id: root.id,
        child_run_ids: [tool.id, model.id],
        direct_child_run_ids: [tool.id],
        total_tokens: 1100,
        total_cost: 0.0035,
        first_token_time: "2026-01-31T12:00:00.500+00:00",
      });
      expect(await client.read(model.id)).toMatchObject({
        parent_run_id: tool.id,
        parent_run_ids: [root.id, tool.id],
        prompt_tokens: 1000,
        completion_tokens: 100,
        prompt_cost: 0.0025,
        completion_cost: 0.001,
        events: [{ name: "new_token", time: "2026-01-31T12:00:00.500Z" }],
      });
    },
  );

  it("stores the same runs from single requests and from a batch", async () => {
    const [root, tool, model] = tree();
    expect(await client.json("POST", "/api/v1/runs", { ...root, end_time: null })).toMatchObject({
      status: 202,
      body: {},
    });
    expect((await client.read(root.id)).status).toBe("pending");
    const { end_time } = root;
    expect((await client.json("PATCH", `/runs/${root.id}`, { end_time, error: "failed\nat x" })).status).toBe(202);
    expect((await client.json("POST", "/api/v1/runs/batch", { post: [tool], patch: [model] })).status).toBe(202);
    expect(await client.read(root.id)).toMatchObject({ status: "error", error: "failed\nat x", total_tokens: 1100 });
  });

  it("is the same whatever the order and the number of requests", async () => {
    const summaries = new Set<string>();
    for (let seed = 1; seed <= 8; seed++) {
      const [root, tool, model] = tree({ session_name: `order ${seed}` });
      const without = ({ id, dotted_order, trace_id }: TestRun) => ({ id, dotted_order, trace_id });
      const bodies = [
        partsOf("post", [{ ...root, outputs: {}, events: [], end_time: null, extra: { metadata: { a: 1, b: 1 } } }]),
        partsOf("patch", [
          { ...without(root), end_time: root.end_time, outputs: { late: 1 }, extra: { metadata: { b: 2 } } },
        ]),
        partsOf("post", [tool]),
        partsOf("post", [model]),
      ];
      const order = shuffled([...bodies, ...bodies], seed);
      for (const parts of order) expect((await client.sendParts(parts)).status).toBe(202);
      const { outputs, extra, status, child_run_ids, total_tokens, total_cost, inputs } = await client.read(root.id);
      const { run_count, total_tokens: tokens, latency_p50 } = await client.session(`order ${seed}`);
      const children = [tool.id, model.id].map((id) => child_run_ids.indexOf(id));
      const sessions = [(await client.read(model.id)).session_id === (await client.read(root.id)).session_id];
      summaries.add(
        JSON.stringify({
          outputs,
          metadata: Object.entries(extra.metadata).sort(),
          status,
          total_tokens,
          total_cost,
          inputs,
          run_count,
          tokens,
          latency_p50,
          children,
          sessions,
        }),
      );
    }
    expect([...summaries]).toHaveLength(1);
    expect(JSON.parse([...summaries][0] as string)).toMatchObject({
      outputs: { late: 1 },
      metadata: [
        ["a", 1],
        ["b", 2],
      ],
      total_tokens: 1100,
      run_count: 1,
      tokens: 1100,
      children: [0, 1],
    });
  });

  it("places runs without a dotted order below their parent, even if it comes later", async () => {
    const [root, child, grandchild] = [randomUUID(), randomUUID(), randomUUID()];
    const fields = { run_type: "chain", session_name: "unplaced", start_time: 1_769_860_800_000 };
    await client.json("POST", "/api/v1/runs", { id: grandchild, name: "c", parent_run_id: child, ...fields });
    await client.json("POST", "/api/v1/runs", { id: child, name: "b", parent_run_id: root, ...fields });
    expect(await client.read(grandchild)).toMatchObject({ trace_id: child, parent_run_ids: [child] });
    await client.json("POST", "/api/v1/runs", { id: root, name: "a", ...fields });
    expect(await client.read(grandchild)).toMatchObject({ trace_id: root, parent_run_ids: [root, child] });
    expect((await client.read(root)).child_run_ids).toEqual([child, grandchild]);
    expect((await client.session("unplaced")).run_count).toBe(1);
  });

  it("places what is below a run whose change and children come before it", async () => {
    const [top, middle, bottom] = [randomUUID(), randomUUID(), randomUUID()];
    const post = (fields: object) =>
      client.json("POST", "/api/v1/runs", { name: "r", run_type: "chain", start_time: 1_769_860_800_000, ...fields });
    const usage = { run_type: "llm", outputs: { usage_metadata: USAGE }, extra: { metadata: MODEL } };
    await post({ id: top, session_name: "early change" });
    await client.json("PATCH", `/api/v1/runs/${middle}`, { end_time: 1_769_860_801_000, outputs: {} });
    await post({ id: bottom, parent_run_id: middle, ...usage });
    await post({ id: middle, parent_run_id: top });
    expect(await client.read(bottom)).toMatchObject({ trace_id: top, parent_run_ids: [top, middle] });
    expect(await client.read(top)).toMatchObject({ child_run_ids: [middle, bottom], total_tokens: 1100 });
    expect(await client.session("early change")).toMatchObject({ run_count: 1, total_tokens: 1100 });
    // The place and a change of the run below it in one request.
    const [part, leaf] = [randomUUID(), randomUUID()];
    await client.json("PATCH", `/api/v1/runs/${part}`, { end_time: 1_769_860_801_000, outputs: {} });
    await post({ id: leaf, parent_run_id: part });
    const placed = { id: part, name: "r", run_type: "chain", start_time: 1_769_860_800_000, parent_run_id: top };
    const changed = { id: leaf, parent_run_id: part, outputs: { changed: true }, end_time: 1_769_860_802_000 };
    await client.json("POST", "/api/v1/runs/batch", { post: [placed], patch: [changed] });
    expect(await client.read(leaf)).toMatchObject({ outputs: { changed: true }, parent_run_ids: [top, part] });
    // A root whose start was not known.
    const [root, child] = [run({ session_name: "early change" }), randomUUID()];
    await client.json("PATCH", `/api/v1/runs/${root.id}`, { end_time: root.end_time });
    await post({ id: child, parent_run_id: root.id });
    await client.post(root);
    expect((await client.read(root.id)).child_run_ids).toEqual([child]);
  });

  it("updates the statistics of each session whose runs move or change, and takes feedback with them", async () => {
    const [top, below, model] = [randomUUID(), randomUUID(), randomUUID()];
    const post = (fields: object) =>
      client.json("POST", "/api/v1/runs", { name: "r", run_type: "chain", start_time: 1_769_860_800_000, ...fields });
    await post({ id: below, parent_run_id: top, session_name: "backend" });
    expect(await client.session("backend")).toMatchObject({ run_count: 1 });
    await post({ id: top, session_name: "frontend" });
    expect(await client.session("backend")).toMatchObject({ run_count: 0 });
    expect(await client.session("frontend")).toMatchObject({ run_count: 1 });
    const usage = { run_type: "llm", outputs: { usage_metadata: USAGE }, extra: { metadata: MODEL } };
    await post({ id: model, parent_run_id: below, session_name: "backend", ...usage });
    expect(await client.session("frontend")).toMatchObject({ total_tokens: 1100 });
    await client.send("DELETE", `/runs/${model}`, "");

    const root = run({ session_name: "of the root" });
    const { session_name: _, ...child } = run({ parent: root });
    await client.post(child as TestRun);
    const { id } = (await client.json("POST", "/api/v1/feedback", { run_id: child.id, key: "k", score: 1 })).body;
    await client.post(root);
    const session = await client.session("of the root");
    expect(session.feedback_stats).toMatchObject({ k: { n: 1 } });
    expect((await client.get(`/feedback?session=${session.id}`)).body).toMatchObject([{ id }]);
  });

  it("does not hang on runs that are their own ancestors", async () => {
    const [a, b] = [randomUUID(), randomUUID()];
    const fields = { name: "cycle", run_type: "chain", session_name: "cycles" };
    const post = [
      { id: a, parent_run_id: b, ...fields },
      { id: b, parent_run_id: a, ...fields },
    ];
    expect((await client.json("POST", "/api/v1/runs/batch", { post })).status).toBe(202);
    expect((await client.read(a)).trace_id).toBeDefined();
    expect((await client.json("POST", "/api/v1/runs", { id: a, parent_run_id: a, ...fields })).status).toBe(400);
  });

  it("refuses more than 20 changes of a run, and stores the rest of the body", async () => {
    const [changed, other] = [run(), run()];
    const patch = Array.from({ length: 25 }, (_, n) => ({ id: changed.id, extra: { metadata: { [`n${n}`]: n } } }));
    const answer = await client.json("POST", "/api/v1/runs/batch", { post: [changed, other], patch });
    expect(answer).toMatchObject({
      status: 400,
      body: { detail: [{ loc: ["body", changed.id], type: "value_error" }] },
    });
    const { extra } = await client.read(changed.id);
    expect(extra.metadata).toMatchObject({ n0: 0, n18: 18 });
    expect(extra.metadata).not.toHaveProperty("n19");
    expect((await client.read(other.id)).name).toBe(other.name);
  });

  it("refuses an invalid dotted order, and stores the rest of the body", async () => {
    const [root, tool] = tree();
    const other = run();
    const wrong = { ...run({ parent: root }), trace_id: other.id };
    const answer = await client.post(root, tool, wrong);
    expect(answer.status).toBe(400);
    expect(answer.body.detail).toHaveLength(1);
    expect(answer.body.detail[0]).toMatchObject({ loc: ["body", wrong.id], type: "value_error" });
    expect(answer.body.detail[0].msg).toContain("trace_id does not match first part of dotted_order");
    expect((await client.read(root.id)).child_run_ids).toEqual([tool.id]);
    expect((await client.get(`/runs/${wrong.id}`)).status).toBe(404);
    const moved = { ...run({ id: tool.id, parent: other }), trace_id: other.id };
    expect((await client.post(moved)).body.detail[0].msg).toContain("cannot be changed");
    const single = await client.json("POST", "/api/v1/runs", { ...run({ parent: root }), parent_run_id: other.id });
    expect(single).toMatchObject({ status: 400 });
    expect(single.body.detail[0].msg).toContain("does not match second to last part of dotted_order");
    const invalid = await client.json("POST", "/api/v1/runs", { ...run(), start_time: "yesterday" });
    expect(invalid).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ["body", expect.any(String), "start_time"] }] },
    });
  });

  it("reads the numbers of Python that JSON lacks as null", async () => {
    const traced = run({ outputs: undefined });
    const body = JSON.stringify({
      post: [{ ...traced, outputs: { texts: ['"NaN', "\\\\"], numbers: ["@", "@", 1] } }],
    });
    const python = body.replace('"@"', "NaN").replace('"@"', "-Infinity");
    expect((await client.send("POST", "/api/v1/runs/batch", python)).status).toBe(202);
    expect((await client.read(traced.id)).outputs).toEqual({ texts: ['"NaN', "\\\\"], numbers: [null, null, 1] });
    expect((await client.send("POST", "/api/v1/runs/batch", '{"post": [NaN}')).status).toBe(400);
  });

  it.each([
    [
      "a content type without a boundary",
      new Uint8Array(multipart({})),
      { "content-type": "multipart/form-data" },
      400,
    ],
    ["a body that ends early", new Uint8Array(multipart(partsOf("post", [run()]))).slice(0, -40), {}, 400],
    ["an unknown encoding", new Uint8Array(1), { "content-encoding": "br" }, 415],
    ["bytes that are not zstd", new Uint8Array(10), { "content-encoding": "zstd" }, 400],
    [
      "a body that unpacks to more than the limit",
      new Uint8Array(zstdCompressSync(Buffer.alloc(300 * 2 ** 20))),
      { "content-encoding": "zstd" },
      413,
    ],
  ])("refuses %s as a whole", async (_, body, headers, status) => {
    const all = { "content-type": "multipart/form-data; boundary=----boundary", ...headers };
    const answer = await client.send("POST", "/api/v1/runs/multipart", body, all);
    expect(answer.status).toBe(status);
    expect(typeof answer.body.detail).toBe("string");
  });

  it.each(["gzip", "zstd"] as const)(
    "accepts %s on all routes, also on those of the agent server",
    async (encoding) => {
      const pack = { gzip: gzipSync, zstd: zstdCompressSync }[encoding];
      const send = (method: string, path: string, body: object) =>
        client.send(method, path, new Uint8Array(pack(JSON.stringify(body))), {
          "content-type": "application/json",
          "content-encoding": encoding,
        });
      for (const prefix of ["", "/api/v1"]) {
        const [created, posted] = [run(), run()];
        expect(await send("POST", `${prefix}/runs`, created)).toMatchObject({ status: 202, body: {} });
        const update = { outputs: { changed: encoding } };
        expect((await send("PATCH", `${prefix}/runs/${created.id}`, update)).status).toBe(202);
        const patch = [{ id: posted.id, name: encoding }];
        expect((await send("POST", `${prefix}/runs/batch`, { post: [posted], patch })).status).toBe(202);
        expect(await client.read(created.id)).toMatchObject({ name: "run", outputs: { changed: encoding } });
        expect(await client.read(posted.id)).toMatchObject({ name: encoding });

        const [traceId, spanId] = [randomUUID().replaceAll("-", ""), randomUUID().slice(-12).padStart(16, "1")];
        const time = { startTimeUnixNano: "1769860800000000000", endTimeUnixNano: "1769860801000000000" };
        const span = { traceId, spanId, name: `${encoding} span`, ...time };
        const spans = { resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] };
        expect((await send("POST", `${prefix}/otel/v1/traces`, spans)).status).toBe(200);
        const run_id = `00000000-0000-0000-${spanId.slice(0, 4)}-${spanId.slice(4)}`;
        expect((await client.read(run_id)).name).toBe(`${encoding} span`);
        expect((await client.sendParts(partsOf("post", [run()]), encoding)).status).toBe(202);
      }
    },
  );

  it("stores at most 100 attachments of a run, and reports the run of the others", async () => {
    const traced = run();
    const parts = (from: number, to: number) =>
      Object.fromEntries(
        Array.from({ length: to - from }, (_, i) => [
          `attachment.${traced.id}.${from + i}`,
          [Buffer.from("x"), "text/plain"],
        ]),
      );
    expect((await client.sendParts({ ...partsOf("post", [traced]), ...parts(0, 99) })).status).toBe(202);
    const answer = await client.sendParts({ ...partsOf("patch", [{ id: traced.id, name: "new" }]), ...parts(98, 103) });
    expect(answer).toMatchObject({
      status: 400,
      body: { detail: Array(3).fill({ loc: ["body", traced.id], msg: expect.stringContaining("at most 100") }) },
    });
    const read = await client.read(traced.id);
    expect([read.name, Object.keys(read.s3_urls).length]).toEqual(["new", 100]);
  });

  it("decides by the body whether a root path belongs to the agent server", async () => {
    const traced = run({ extra: { metadata: { assistant_id: "x" } } });
    expect(await client.json("POST", "/runs", traced)).toMatchObject({ status: 202, body: {} });
    expect((await client.json("POST", "/runs/batch", { post: [run()] })).status).toBe(202);
    const started = await client.json("POST", "/runs", { assistant_id: "echo", input: {} });
    expect(started.body.run_id).toBeDefined();
    for (const body of [{}, { post: [] }, { post: null, patch: null }, { other: 1 }])
      expect(await client.json("POST", "/runs/batch", body)).toMatchObject({ status: 202, body: {} });
    for (const body of [null, 1, "text", { assistant_id: "echo" }])
      expect(await client.json("POST", "/runs/batch", body)).toMatchObject({ status: 422 });
    expect((await client.json("POST", "/runs/batch", [{ assistant_id: "echo", input: {} }])).body).toHaveLength(1);
    expect((await client.json("POST", "/runs", [])).status).toBe(422);
    // Large bodies are read in another thread.
    const text = '"assistant_id": "x"'.repeat(20_000);
    expect((await client.json("POST", "/runs", run({ inputs: { text } }))).status).toBe(202);
    expect((await client.json("POST", "/runs", { input: { text }, assistant_id: "echo" })).body.run_id).toBeDefined();
    expect((await client.json("POST", "/runs/batch", { post: [run({ inputs: { text } })] })).status).toBe(202);
  });

  it("creates a session once for requests that name it at the same time", async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => client.post(run({ session_name: "at once" }))));
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(202));
    expect((await client.session("at once")).run_count).toBe(20);
    const nowhere = run({ session_name: undefined });
    expect((await client.post(nowhere)).status).toBe(202);
    expect((await client.read(nowhere.id)).session_id).toBe((await client.session("default")).id);
    const unknown = await client.post(run({ session_id: randomUUID() }));
    expect(unknown).toMatchObject({ status: 400, body: { detail: [{ msg: "Value error, Session not found" }] } });
  });

  it("keeps the bytes of attachments and serves them as downloads", async () => {
    const traced = run();
    const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, i) => (i * 7) % 256));
    const parts = { ...partsOf("post", [traced]), [`attachment.${traced.id}.page`]: [bytes, "text/html"] };
    expect((await client.sendParts(parts, "gzip")).status).toBe(202);
    expect((await client.sendParts(parts)).status).toBe(202);
    const { s3_urls } = await client.read(traced.id);
    expect(s3_urls["attachment.page"].mime_type).toBe("text/html");
    const response = await service.threadmill.fetch(new Request(s3_urls["attachment.page"].presigned_url));
    expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true);
    expect(response.headers.get("content-disposition")).toMatch(/^attachment/);
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    const { id } = await client.session("traces");
    expect((await service.request("DELETE", `/api/v1/sessions/${id}`)).status).toBe(200);
    expect((await client.get(`/runs/${traced.id}`)).status).toBe(404);
    expect((await service.threadmill.fetch(new Request(s3_urls["attachment.page"].presigned_url))).status).toBe(404);
  });

  it("moves feedback that is sent again for a run of another session", async () => {
    const [first, second] = [run({ session_name: "feedback from" }), run({ session_name: "feedback to" })];
    const id = randomUUID();
    const score = (run_id: string) => ({ [`feedback.${id}`]: { run_id, key: "style", score: 1 } });
    await client.sendParts({ ...partsOf("post", [first, second]), ...score(first.id) });
    expect((await client.session("feedback from")).feedback_stats).toMatchObject({ style: { n: 1 } });
    expect((await client.sendParts(score(second.id))).status).toBe(202);
    expect((await client.session("feedback from")).feedback_stats ?? {}).toEqual({});
    expect((await client.session("feedback to")).feedback_stats).toMatchObject({ style: { n: 1, avg: 1 } });
  });

  it("replaces feedback that is sent again with its id", async () => {
    const session_name = "feedback again";
    const [traced, other] = [run({ session_name }), run({ session_name })];
    await client.post(traced, other);
    const id = randomUUID();
    const send = (fields: object) => client.json("POST", "/feedback", { id, run_id: traced.id, key: "k", ...fields });
    const first = await send({ score: 0 });
    const again = await send({ score: 1 });
    expect([first.status, again.status]).toEqual([200, 200]);
    expect(again.body).toMatchObject({ id, score: 1, created_at: first.body.created_at });
    for (const fields of [{ run_id: other.id }, { key: "other" }])
      expect(await send(fields)).toMatchObject({ status: 409, body: { detail: expect.stringContaining(id) } });
    const session = await client.session(session_name);
    expect(session.feedback_stats).toMatchObject({ k: { n: 1, avg: 1 } });
    const ofSession = { id: randomUUID(), session_id: session.id, key: "whole" };
    for (const score of [0, 0.5]) await client.json("POST", "/feedback", { ...ofSession, score });
    expect((await client.session(session_name)).session_feedback_stats).toMatchObject({ whole: { n: 1, avg: 0.5 } });
  });

  it("counts feedback once its run is there", async () => {
    const session = (await client.json("POST", "/api/v1/sessions", { name: "counted later" })).body;
    const traced = run({ session_name: "counted later" });
    const early = { session_id: session.id, run_id: traced.id, key: "correct", score: 1 };
    const { id } = (await client.json("POST", "/api/v1/feedback", early)).body;
    await client.json("POST", "/api/v1/feedback", { session_id: session.id, key: "whole", score: 0.5 });
    await client.post(run({ session_name: "counted later" }));
    const before = await client.session("counted later");
    expect([before.feedback_stats, before.session_feedback_stats]).toMatchObject([{}, { whole: { n: 1 } }]);
    expect(before.feedback_stats).toEqual({});
    expect((await client.get(`/feedback/${id}`)).body).toMatchObject({ run_id: traced.id, score: 1 });
    expect((await client.get(`/feedback?session=${session.id}&key=correct`)).body).toMatchObject([{ id }]);
    await client.post(traced);
    const after = await client.session("counted later");
    expect([after.feedback_stats, after.session_feedback_stats]).toMatchObject([
      { correct: { n: 1, avg: 1 } },
      { whole: { n: 1 } },
    ]);
  });

  it("attaches feedback that comes before the run, with the run, and again", async () => {
    const [root, , model] = tree({ session_name: "feedback" });
    const early = { run_id: root.id, key: "correct", score: true, start_time: Date.now() };
    expect((await client.json("POST", "/api/v1/feedback", early)).status).toBe(200);
    const id = randomUUID();
    const parts = {
      ...partsOf("post", [root, model]),
      [`feedback.${id}`]: { run_id: model.id, key: "style", score: 0.5 },
    };
    for (let i = 0; i < 2; i++) expect((await client.sendParts(parts)).status).toBe(202);
    expect((await client.read(root.id)).feedback_stats).toMatchObject({ correct: { n: 1, avg: 1 } });
    const { feedback_stats } = await client.session("feedback");
    expect(feedback_stats).toMatchObject({ correct: { n: 1, avg: 1 }, style: { n: 1, avg: 0.5 } });
    const found = (await client.get(`/feedback?run=${model.id}`)).body;
    expect(found).toMatchObject([{ id, run_id: model.id, trace_id: root.id, is_root: false }]);
  });

  it("stores OpenTelemetry spans, in requests of their own", async () => {
    const trace = { traceId: "5b8efff798038103d269b633813fc60c", startTimeUnixNano: "1769860800000000000" };
    const end = { endTimeUnixNano: "1769860801000000000" };
    const attribute = (key: string, value: object) => ({ key, value });
    const child = {
      ...trace,
      ...end,
      spanId: "eee19b7ec3c1b175",
      parentSpanId: "eee19b7ec3c1b174",
      name: "chat gpt-4o",
      attributes: [
        attribute("gen_ai.operation.name", { stringValue: "chat" }),
        attribute("gen_ai.request.model", { stringValue: "gpt-4o" }),
        attribute("gen_ai.provider.name", { stringValue: "openai" }),
        attribute("gen_ai.usage.input_tokens", { intValue: "1000" }),
        attribute("gen_ai.usage.output_tokens", { intValue: 100 }),
      ],
    };
    const root = { ...trace, ...end, spanId: "eee19b7ec3c1b174", name: "agent" };
    const service_name = attribute("service.name", { stringValue: "spans" });
    for (const span of [child, root, child]) {
      const spans = { resourceSpans: [{ resource: { attributes: [service_name] }, scopeSpans: [{ spans: [span] }] }] };
      const answer = await client.json("POST", "/api/v1/otel/v1/traces", spans);
      expect(answer).toMatchObject({ status: 200, body: { partialSuccess: {} } });
    }
    expect(await client.read("00000000-0000-0000-eee1-9b7ec3c1b174")).toMatchObject({
      name: "agent",
      child_run_ids: ["00000000-0000-0000-eee1-9b7ec3c1b175"],
      total_tokens: 1100,
      total_cost: 0.0035,
    });
    expect(await client.session("spans")).toMatchObject({ run_count: 1, total_tokens: 1100 });
    const protobuf = { "content-type": "application/x-protobuf" };
    const response = await client.send("POST", "/otel/v1/traces", new Uint8Array([0xff]), protobuf);
    expect([response.status, response.headers.get("content-type")]).toEqual([400, "application/x-protobuf"]);
  });

  it("finds runs by their place and their fields", async () => {
    const [root, tool, model] = tree({ session_name: "search", tags: ["blue"] });
    const failed = run({ session_name: "search", at: 5_000, name: "other", error: "E", end_time: null });
    await client.post(root, tool, model, failed);
    const { id: session } = await client.session("search");
    const ids = async (body: object) =>
      (await client.query({ session, order: "asc", ...body })).map((r: TestRun) => r.id);
    expect(await ids({})).toEqual([root.id, tool.id, model.id, failed.id]);
    expect(await ids({ is_root: true })).toEqual([root.id, failed.id]);
    expect(await ids({ execution_order: 1 })).toEqual([root.id, failed.id]);
    expect(await ids({ trace: root.id, is_root: false })).toEqual([tool.id, model.id]);
    expect(await ids({ parent_run: tool.id })).toEqual([model.id]);
    expect(await ids({ run_type: "llm" })).toEqual([model.id]);
    expect(await ids({ filter: 'has(tags, "blue")' })).toEqual([root.id, tool.id, model.id]);
    expect(await ids({ filter: "gt(total_tokens, 1000)", is_root: true })).toEqual([root.id]);
    expect(await ids({ trace_filter: 'eq(name, "agent")', run_type: "tool" })).toEqual([tool.id]);
    expect(await ids({ tree_filter: 'eq(run_type, "llm")', is_root: true })).toEqual([root.id]);
    expect(await ids({ error: true })).toEqual([failed.id]);
    const pages = [];
    for (let cursor: string | undefined; ; ) {
      const answer = await service.request("POST", "/api/v1/runs/query", { session, limit: 2, cursor });
      pages.push(answer.body.runs.map((each: TestRun) => each.id));
      cursor = answer.body.cursors.next ?? undefined;
      if (!cursor) break;
    }
    expect(pages).toEqual([
      [failed.id, model.id],
      [tool.id, root.id],
    ]);
    const stats = await service.request("POST", "/api/v1/runs/stats", { session: [session] });
    expect(stats.body).toMatchObject({ run_count: 4, total_tokens: 1100, error_rate: 0.25 });
  });

  it("makes the roots of an experiment comparable with an upload", async () => {
    const at = "2026-01-31T12:00:00Z";
    const row = (id: string, score: number) => ({
      row_id: id,
      inputs: { q: id },
      expected_outputs: { a: 1 },
      actual_outputs: { a: score },
      start_time: at,
      end_time: at,
      evaluation_scores: [{ key: "correct", score }],
    });
    const examples = [randomUUID(), randomUUID(), randomUUID()];
    const uploaded = (
      await service.request("POST", "/api/v1/datasets/upload-experiment", {
        experiment_name: "uploaded",
        dataset_name: "both",
        experiment_start_time: at,
        experiment_end_time: at,
        results: examples.map((id) => row(id, 0)),
      })
    ).body;
    const session = (
      await service.request("POST", "/api/v1/sessions", {
        name: "evaluated",
        reference_dataset_id: uploaded.dataset.id,
      })
    ).body;
    for (const repetition of [0, 1])
      for (const [index, example] of examples.entries()) {
        const traced = run({
          session_name: "evaluated",
          reference_example_id: example,
          outputs: { a: index },
          at: repetition,
        });
        await client.json("POST", "/api/v1/feedback", {
          run_id: traced.id,
          session_id: session.id,
          key: "correct",
          score: index,
        });
        await client.post({ ...traced, end_time: null }, run({ parent: traced }));
        await client.sendParts(partsOf("patch", [{ id: traced.id, end_time: traced.end_time }]));
      }
    expect(await client.session("evaluated")).toMatchObject({
      run_count: 6,
      feedback_stats: { correct: { n: 6, avg: 1 } },
    });
    const compared = await service.request("POST", `/api/v1/datasets/${uploaded.dataset.id}/compare`, {
      baseline_session_id: uploaded.experiment.id,
      comparison_session_ids: [session.id],
    });
    expect(compared.body.comparisons).toMatchObject([{ key: "correct", wins: 2 }]);
    const page = await service.request("POST", `/api/v1/datasets/${uploaded.dataset.id}/runs`, {
      session_ids: [session.id],
    });
    expect(page.body.map((example: { runs: unknown[] }) => example.runs.length)).toEqual([2, 2, 2]);
  });
});
