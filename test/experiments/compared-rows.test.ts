import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ComparedRow, ComparedRowsQuery } from "../../src/experiments/contract/app-comparison.ts";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { experimentOf, type Row } from "./experiment.ts";

/** Of the baseline and of the other, by example; null: no score. */
const BEFORE = [1, 0, 0.5, null, 0.5];
const AFTER = [0, 1, 0.25, 1, 0.5];

describe.each(databases)("rows of a comparison on %s", (database) => {
  let service: TestService;
  let dataset: string;
  const sessions: string[] = [];
  beforeAll(async () => {
    service = await startService({ database, config: "examples/langgraph.json" });
    const dataset_name = `rows-${randomUUID()}`;
    const ids = BEFORE.map(() => randomUUID());
    for (const [n, scores] of [BEFORE, AFTER].entries()) {
      const body = experimentOf(
        scores.length,
        (index) => [
          ...(scores[index] === null ? [] : [{ key: "similarity", score: scores[index] }]),
          { key: "tone", value: index % 2 === 0 ? "dry" : "warm" },
        ],
        { dataset_name },
        (index) => ids[index] as string,
      );
      const rows = body.results as [Row, Row, Row, Row, Row];
      if (n === 1) {
        rows[2].error = "the tide came in";
        rows[3].run_metadata = { model: "small" };
        rows[4].end_time = new Date(Date.parse(rows[4].start_time) + 9_000).toISOString();
        // The last example ran twice.
        rows.push({ ...rows[4], evaluation_scores: [{ key: "similarity", score: 0.7 }] });
      }
      const { body: answer } = await service.request("POST", "/api/v1/datasets/upload-experiment", body);
      sessions.push(answer.experiment.id);
      dataset = answer.dataset.id;
    }
  });
  afterAll(() => service.stop());

  const read = (path: string, query: object) =>
    service.request("POST", `/app/api/datasets/${dataset}/${path}`, { session_ids: sessions, ...query });
  const numbers = async (query: Partial<ComparedRowsQuery>) =>
    (await read("compared-rows", query)).body.rows.map(({ number }: ComparedRow) => number);
  const other = () => sessions[1] as string;

  it("show each experiment's scores, latency, error and the beginning of its outputs", async () => {
    const { body } = await read("compared-rows", { offset: 2, limit: 1 });
    expect(body).toEqual({
      total: 5,
      position: null,
      rows: [
        {
          example_id: expect.any(String),
          number: 3,
          inputs_preview: "What is 2 and 2?",
          expected_preview: '{"answer":4}',
          cells: [
            {
              runs: 1,
              errors: 0,
              error: null,
              outputs_preview: '{"answer":4}',
              latency_s: 0.102,
              is_earlier_version: false,
              scores: { similarity: 0.5 },
              labels: { tone: "dry" },
            },
            {
              runs: 1,
              errors: 1,
              error: "the tide came in",
              outputs_preview: '{"answer":4}',
              latency_s: 0.102,
              is_earlier_version: false,
              scores: { similarity: 0.25 },
              labels: { tone: "dry" },
            },
          ],
        },
      ],
    });
  });

  it("count an example that ran twice once, with its mean", async () => {
    const { rows } = (await read("compared-rows", {})).body;
    expect(rows).toHaveLength(5);
    expect(rows[4].cells[1]).toMatchObject({ runs: 2, scores: { similarity: 0.6 }, latency_s: 9 });
  });

  it("are those that got better or worse than the baseline, in the direction of the key", async () => {
    const change = (direction: "better" | "worse" | "changed", key = "similarity") =>
      numbers({ change: { session_id: other(), key, direction } });
    expect([await change("better"), await change("worse"), await change("changed")]).toEqual([
      [2, 5],
      [1, 3],
      [1, 2, 3, 5],
    ]);
    await service.request("POST", "/api/v1/feedback-configs", {
      feedback_key: "similarity",
      feedback_config: { type: "continuous" },
      is_lower_score_better: true,
    });
    expect(await change("better")).toEqual([1, 3]);
    await service.request("DELETE", "/api/v1/feedback-configs?feedback_key=similarity");
    expect(await change("better", "tone")).toEqual([]);
  });

  it("are those within a range of scores, those that failed, those with a word, those that a filter finds", async () => {
    const range = (min?: number, max?: number) =>
      numbers({ scores: [{ session_id: other(), key: "similarity", min, max }] });
    expect([await range(0.25, 0.6), await range(1), await range(undefined, 0)]).toEqual([[3, 5], [2, 4], [1]]);
    expect(await numbers({ failed: sessions })).toEqual([3]);
    expect([await numbers({ text: "TIDE came" }), await numbers({ text: "is 3 and" })]).toEqual([[3], [4]]);
    // Expected alone: all runs of the first example answered 1 instead of 0.
    expect(await numbers({ text: '"answer":0' })).toEqual([1]);
    const expression = 'and(eq(metadata_key, "model"), eq(metadata_value, "small"))';
    expect(await numbers({ filters: { [other()]: [expression] } })).toEqual([4]);
    expect((await read("compared-rows", { filters: { [other()]: ["eq(nothing"] } })).status).toBe(400);
  });

  it("are sorted by a score, a difference or a latency, those without one last", async () => {
    const by = (order: object) =>
      numbers({ order: { by: "score", key: "similarity", delta: false, descending: true, ...order } as never });
    const baseline = sessions[0] as string;
    expect(await by({ session_id: baseline })).toEqual([1, 3, 5, 2, 4]);
    expect(await by({ session_id: baseline, descending: false })).toEqual([2, 3, 5, 1, 4]);
    expect(await by({ session_id: other(), delta: true })).toEqual([2, 5, 3, 1, 4]);
    expect((await by({ session_id: other(), by: "latency" }))[0]).toBe(5);
  });

  it("say where an example stands among them", async () => {
    const all = (await read("compared-rows", {})).body.rows as ComparedRow[];
    const order = { by: "score", key: "similarity", session_id: other(), delta: true };
    const position = async (number: number, query: object) =>
      (await read("compared-rows", { example_id: all[number - 1]?.example_id, limit: 0, ...query })).body;
    expect(await position(3, { order })).toEqual({ total: 5, position: 2, rows: [] });
    expect((await position(3, { text: "is 3 and" })).position).toBe(null);
  });

  it("are refused for an experiment that is not among the compared ones, and unknown datasets", async () => {
    const change = { session_id: randomUUID(), key: "similarity", direction: "worse" };
    expect((await read("compared-rows", { change })).status).toBe(400);
    expect((await read("compared-rows", { session_ids: [randomUUID()] })).status).toBe(404);
    const elsewhere = await service.request("POST", `/app/api/datasets/${randomUUID()}/distributions`, {
      session_ids: sessions,
    });
    expect(elsewhere.status).toBe(404);
  });

  it("have a distribution by key, with the same ranges for all experiments", async () => {
    const { body } = await read("distributions", {});
    expect(body).toEqual([
      {
        key: "similarity",
        low: 0,
        high: 1,
        is_binary: false,
        counts: [
          [1, 0, 0, 0, 0, 2, 0, 0, 0, 1],
          [1, 0, 1, 0, 0, 0, 1, 0, 0, 2],
        ],
      },
    ]);
  });
});
