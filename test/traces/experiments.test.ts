import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { run, TraceClient } from "./trace-client.ts";

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
    expect(example.runs).toMatchObject([{ ...expected, feedbacks: [{ key: "correct", run_id: root.id }] }]);
    const preview = await post(`/datasets/${dataset.id}/runs`, { session_ids: [session.id], preview: true });
    expect(preview[0].runs).toMatchObject([{ ...expected, inputs: null, outputs: null }]);
    const v2 = await service.request("POST", `/api/v2/datasets/${dataset.id}/experiment-runs`, {
      experiment_ids: [session.id],
      selects: ["INPUTS", "TOTAL_TOKENS", "RUN_TYPE"],
    });
    expect(v2.body.items[0].runs).toEqual([{ inputs: { own: true }, total_tokens: 5, run_type: "TOOL" }]);
  });

  it("have the runs of anonymous functions", async () => {
    const { session, root } = await experiment();
    expect(await client.post({ ...root, name: "" })).toMatchObject({ status: 202 });
    expect(await client.query({ session: session.id })).toMatchObject([{ id: root.id, name: "" }]);
  });
});
