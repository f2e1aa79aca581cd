import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { partsOf, run, TraceClient } from "./trace-client.ts";

describe.each(databases)("experiments of traces on %s", (database) => {
  let service: TestService;
  let client: TraceClient;
  beforeAll(async () => {
    service = await startService({ database, config: "examples/langgraph.json", env: { API_KEYS: "" } });
    client = new TraceClient(service);
  });
  afterAll(() => service.stop());

  const post = async (path: string, body: object) => (await service.request("POST", `/api/v1${path}`, body)).body;

  /** A session of a dataset with one example. */
  async function experiment() {
    const name = randomUUID();
    const dataset = await post("/datasets", { name });
    const example = await post("/examples", { dataset_id: dataset.id, inputs: { q: "?" }, outputs: { a: 1 } });
    const session = await post("/sessions", { name, reference_dataset_id: dataset.id });
    const root = run({ session_name: name, reference_example_id: example.id });
    const score = (fields: object) => post("/feedback", { session_id: session.id, ...fields });
    return { name, dataset, session, root, score };
  }

  it("keep the statistics of their runs when the experiment is scored before they are read", async () => {
    const { name, root, score } = await experiment();
    await score({ run_id: root.id, key: "correct", score: 1 });
    await client.post(root);
    await score({ key: "f1", score: 0.5 });
    expect(await client.session(name)).toMatchObject({
      run_count: 1,
      feedback_stats: { correct: { n: 1, avg: 1 } },
      session_feedback_stats: { f1: { n: 1, avg: 0.5 } },
    });
    await score({ key: "f1", score: 1 });
    expect(await client.session(name)).toMatchObject({ run_count: 1, session_feedback_stats: { f1: { avg: 0.75 } } });
  });

  it("are not compared by a score that was deleted", async () => {
    const { dataset, session, root, score } = await experiment();
    const other = await post("/sessions", { name: randomUUID(), reference_dataset_id: dataset.id });
    const second = run({
      session_id: other.id,
      session_name: undefined,
      reference_example_id: root.reference_example_id,
    });
    await client.post(root, second);
    await post("/feedback", { run_id: second.id, key: "wrong", score: 1 });
    const { id } = await score({ run_id: root.id, key: "wrong", score: 0 });
    const compared = async () => {
      const body = { baseline_session_id: session.id, comparison_session_ids: [other.id] };
      return (await post(`/datasets/${dataset.id}/compare`, body)).comparisons;
    };
    expect(await compared()).toMatchObject([{ key: "wrong", wins: 1 }]);
    await service.request("DELETE", `/api/v1/feedback/${id}`);
    expect(await compared()).toMatchObject([{ key: "wrong", wins: 0 }]);
  });

  it("show the runs of an example as they were traced", async () => {
    const { dataset, session, root, score } = await experiment();
    const traced = { ...root, inputs: { own: true }, tags: ["blue"], run_type: "tool" };
    const usage_metadata = { input_tokens: 2, output_tokens: 3 };
    const model = run({ parent: root, run_type: "llm", session_name: root.session_name, outputs: { usage_metadata } });
    await client.post(traced, model);
    await score({ run_id: root.id, key: "correct", score: 1 });
    const expected = {
      id: root.id,
      inputs: { own: true },
      outputs: { answer: "!" },
      tags: ["blue"],
      run_type: "tool",
      total_tokens: 5,
      dotted_order: root.dotted_order,
      feedback_stats: { correct: { n: 1 } },
    };
    const [example] = await post(`/datasets/${dataset.id}/runs`, { session_ids: [session.id] });
    expect(example.runs).toMatchObject([{ ...expected, child_run_ids: [model.id], direct_child_run_ids: [model.id] }]);
    expect(example.runs).toMatchObject([{ ...expected, feedbacks: [{ key: "correct", run_id: root.id }] }]);
    const preview = await post(`/datasets/${dataset.id}/runs`, { session_ids: [session.id], preview: true });
    expect(preview[0].runs).toMatchObject([{ ...expected, inputs: null, outputs: null, child_run_ids: null }]);
    const v2 = await service.request("POST", `/api/v2/datasets/${dataset.id}/experiment-runs`, {
      experiment_ids: [session.id],
      selects: ["INPUTS", "TOTAL_TOKENS", "RUN_TYPE"],
    });
    expect(v2.body.items[0].runs).toEqual([{ inputs: { own: true }, total_tokens: 5, run_type: "TOOL" }]);
  });

  it("are filtered by what their runs were traced with", async () => {
    const { dataset, session, root, score } = await experiment();
    const other = await post("/examples", { dataset_id: dataset.id, inputs: { q: "other" } });
    const pending = run({ session_name: root.session_name, reference_example_id: other.id });
    const traced = { ...root, inputs: { own: "word" }, tags: ["blue"], run_type: "tool" };
    const usage_metadata = { input_tokens: 2, output_tokens: 3 };
    const model = run({ parent: root, run_type: "llm", session_name: root.session_name, outputs: { usage_metadata } });
    await client.post(traced, model, { ...pending, end_time: undefined, outputs: undefined });
    await score({ run_id: root.id, key: "correct", score: 1 });
    const found = async (filter: string) =>
      (
        await post(`/datasets/${dataset.id}/runs`, { session_ids: [session.id], filters: { [session.id]: [filter] } })
      ).map(({ id }: { id: string }) => id);
    for (const filter of [
      'has(tags, "blue")',
      'eq(run_type, "tool")',
      "gt(total_tokens, 4)",
      'search("word")',
      'eq(status, "success")',
      'eq(feedback_key, "correct")',
      `eq(reference_example_id, "${root.reference_example_id}")`,
    ])
      expect([filter, await found(filter)]).toEqual([filter, [root.reference_example_id]]);
    expect(await found('eq(status, "pending")')).toEqual([other.id]);
    expect(await found('eq(run_type, "chain")')).toEqual([other.id]);
  });

  it("show a run at the example that it refers to last", async () => {
    const { dataset, session, root, score } = await experiment();
    const other = await post("/examples", { dataset_id: dataset.id, inputs: { q: "other" } });
    await client.post(root);
    await score({ run_id: root.id, key: "correct", score: 1 });
    const rows = async () =>
      (await post(`/datasets/${dataset.id}/runs`, { session_ids: [session.id] })).flatMap(
        ({ id, runs }: { id: string; runs: { id: string; feedback_stats: object | null }[] }) =>
          runs.map((of) => [id, of.id, of.feedback_stats]),
      );
    const feedback_stats = { correct: expect.objectContaining({ n: 1, avg: 1 }) };
    expect(await rows()).toEqual([[root.reference_example_id, root.id, feedback_stats]]);
    const next = run({ session_name: root.session_name, reference_example_id: other.id });
    await client.post({ ...root, reference_example_id: other.id }, next);
    expect(await rows()).toEqual([
      [other.id, root.id, feedback_stats],
      [other.id, next.id, expect.anything()],
    ]);
  });

  it("show the version of the example that the metadata name, or that was the newest at the start", async () => {
    const { dataset, session, root } = await experiment();
    const path = `/api/v1/examples/${root.reference_example_id}`;
    const first = (await service.request("GET", path)).body;
    await service.request("PATCH", path, { inputs: { q: "new" }, outputs: { a: 2 } });
    const { modified_at } = (await service.request("GET", path)).body;
    const { dotted_order, ...undated } = root;
    const started_now = { ...undated, start_time: new Date().toISOString(), end_time: undefined };
    const extra = { metadata: { example_version: first.modified_at } };
    await client.sendParts(partsOf("post", [{ ...started_now, extra }]));
    const fields = { session_name: undefined, reference_example_id: root.reference_example_id };
    const sessionOf = async (of: object) => {
      const { id } = await post("/sessions", { name: randomUUID(), reference_dataset_id: dataset.id });
      await client.post(run({ ...fields, session_id: id, ...of }));
      return id as string;
    };
    const early = await sessionOf({});
    const named = await sessionOf({ extra: { metadata: { example_version: modified_at.replace("+00:00", "Z") } } });
    const shown = async (...session_ids: string[]) => {
      const [row] = await post(`/datasets/${dataset.id}/runs`, { session_ids });
      const table = `/app/api/datasets/${dataset.id}/compared-rows`;
      const [cells] = (await service.request("POST", table, { session_ids })).body.rows;
      expect(cells).toMatchObject({ inputs_preview: row.inputs.q, expected_preview: JSON.stringify(row.outputs) });
      return row.outputs.a;
    };
    expect(await shown(session.id)).toBe(1);
    expect(await shown(early)).toBe(1);
    expect(await shown(named)).toBe(2);
    expect(await shown(early, named)).toBe(2);
  });

  it("link to the attachments of their runs, and to those of the examples", async () => {
    const { dataset, session, root } = await experiment();
    const bytes = Uint8Array.of(0, 255, 128);
    await client.sendParts({ [`post.${root.id}`]: root, [`attachment.${root.id}.pic`]: [bytes, "image/png"] });
    const body = { dataset_id: dataset.id, inputs: {}, source_run_id: root.id, use_source_run_attachments: ["pic"] };
    const copy = await post("/examples", body);
    await client.post(run({ session_name: session.name, reference_example_id: copy.id }));
    const rows = await post(`/datasets/${dataset.id}/runs`, { session_ids: [session.id] });
    const [row, other] = rows.toSorted((a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1));
    const link = {
      mime_type: "image/png",
      presigned_url: expect.stringMatching(/\/public\/attachments\/[0-9a-f]{16}\.\d+\.[0-9a-f]{32}$/),
    };
    expect([row.attachment_urls, row.runs[0].s3_urls]).toEqual([null, { "attachment.pic": link }]);
    expect([other.attachment_urls, other.runs[0].s3_urls]).toEqual([{ "attachment.pic": link }, null]);
    const v2 = { experiment_ids: [session.id], selects: ["NAME", "ATTACHMENTS"] };
    const { items } = (await service.request("POST", `/api/v2/datasets/${dataset.id}/experiment-runs`, v2)).body;
    expect(items[0].runs).toEqual([{ name: root.name, attachments: { pic: link.presigned_url } }]);
    const response = await service.threadmill.fetch(new Request(row.runs[0].s3_urls["attachment.pic"].presigned_url));
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(bytes);
  });

  it("have a row for a run from its start, without latency and error until its end", async () => {
    const { name, dataset, session, root, score } = await experiment();
    const baseline = await post("/sessions", { name: randomUUID(), reference_dataset_id: dataset.id });
    const fields = {
      session_id: baseline.id,
      session_name: undefined,
      reference_example_id: root.reference_example_id,
    };
    await client.post(run(fields));
    const { end_time, outputs, ...pending } = root;
    await client.post(pending as typeof root);
    await score({ run_id: root.id, key: "correct", score: 1 });
    const rows = async () => {
      const [example] = await post(`/datasets/${dataset.id}/runs`, { session_ids: [session.id] });
      return example.runs;
    };
    const compared = async () => {
      const query = { session_ids: [baseline.id, session.id] };
      const { body } = await service.request("POST", `/app/api/datasets/${dataset.id}/compared-rows`, query);
      return body.rows[0].cells[1];
    };
    expect(await rows()).toMatchObject([{ id: root.id, status: "pending", end_time: null, outputs: null }]);
    expect(await client.session(name)).toMatchObject({
      run_count: 1,
      error_rate: null,
      latency_p50: null,
      feedback_stats: { correct: { n: 1, avg: 1 } },
    });
    expect(await compared()).toMatchObject({ runs: 1, errors: 0, latency_s: null, scores: { correct: 1 } });
    const body = { baseline_session_id: baseline.id, comparison_session_ids: [session.id] };
    expect((await service.request("POST", `/api/v1/datasets/${dataset.id}/compare`, body)).status).toBe(200);

    await client.sendParts(partsOf("patch", [{ id: root.id, end_time, outputs: { late: 1 } }]));
    expect(await rows()).toMatchObject([{ id: root.id, status: "success", outputs: { late: 1 } }]);
    expect(await client.session(name)).toMatchObject({ run_count: 1, error_rate: 0, latency_p50: 1 });
    expect(await compared()).toMatchObject({ runs: 1, latency_s: 1 });
  });

  it("have the runs of anonymous functions", async () => {
    const { session, root } = await experiment();
    expect(await client.post({ ...root, name: "" })).toMatchObject({ status: 202 });
    expect(await client.query({ session: session.id })).toMatchObject([{ id: root.id, name: "" }]);
  });
});
