import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { experimentOf, type Row } from "./experiment.ts";

type Scores = (number | null)[];

describe.each(databases)("comparing experiments on %s", (database) => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService({ database, config: "examples/langgraph.json" });
  });
  afterAll(() => service.stop());

  /** Uploads an experiment a list of scores, all over the same examples; null is an example without a score. */
  async function uploaded(
    lists: Record<string, Scores>[],
  ): Promise<{ dataset: string; sessions: string[]; rows: string[] }> {
    const dataset_name = `compared-${randomUUID()}`;
    const rows = Array.from({ length: 60 }, () => randomUUID());
    const sessions: string[] = [];
    let dataset = "";
    for (const keys of lists) {
      const length = Math.max(...Object.values(keys).map((scores) => scores.length));
      const scores = (index: number) =>
        Object.entries(keys).flatMap(([key, of]) => (of[index] === null ? [] : [{ key, score: of[index] }]));
      const body = experimentOf(length, scores, { dataset_name }, (index) => rows[index] as string);
      const { body: answer } = await service.request("POST", "/api/v1/datasets/upload-experiment", body);
      sessions.push(answer.experiment.id);
      dataset = answer.dataset.id;
    }
    return { dataset, sessions, rows };
  }

  const compare = async (dataset: string, [baseline, ...others]: string[], more: object = {}) =>
    (
      await service.request("POST", `/api/v1/datasets/${dataset}/compare`, {
        baseline_session_id: baseline,
        comparison_session_ids: others,
        ...more,
      })
    ).body;

  const repeat = (n: number, value: number | null): Scores => Array.from({ length: n }, () => value);

  it("returns differences, intervals and tests by experiment and key", async () => {
    // 0/1: 2 examples got worse, 10 better, 8 stay. Exact McNemar of 2 and 10: 2 * (1 + 12 + 66) / 2^12 = 0.03857421875.
    const before = [...repeat(2, 1), ...repeat(10, 0), ...repeat(8, 1)];
    const after = [...repeat(2, 0), ...repeat(10, 1), ...repeat(8, 1)];
    const { dataset, sessions, rows } = await uploaded([{ right: before }, { right: after }]);
    const { comparisons, ...rest } = await compare(dataset, sessions);

    expect(rest).toEqual({ baseline_session_id: sessions[0], confidence: 0.95, resamples: 2000, seed: 1 });
    expect(comparisons).toHaveLength(1);
    expect(comparisons[0]).toMatchObject({
      session_id: sessions[1],
      key: "right",
      is_lower_score_better: false,
      n_paired: 20,
      only_baseline: 0,
      only_comparison: 0,
      mean_baseline: 0.5,
      mean_comparison: 0.9,
      mean_delta: 0.4,
      wins: 10,
      losses: 2,
      ties: 8,
      test: "mcnemar",
      improved_examples: rows.slice(2, 12),
      regressed_examples: rows.slice(0, 2),
    });
    expect(comparisons[0].p_value).toBeCloseTo(0.03857421875, 12);
    expect(comparisons[0].p_adjusted).toBe(comparisons[0].p_value);
    expect(comparisons[0].ci_low).toBeGreaterThan(0);
    expect(comparisons[0].ci_high).toBeLessThan(0.8);
  });

  it("ranks scores that are not 0 or 1, the largest changes first", async () => {
    // scipy.stats.wilcoxon([0.1, 0.2, 0.3, 0.4, 0.5, -0.05, 0.6, 0.7]).pvalue (SciPy 1.17.1) is 0.015625.
    const deltas = [0.1, 0.2, 0.3, 0.4, 0.5, -0.05, 0.6, 0.7];
    const { dataset, sessions, rows } = await uploaded([
      { similarity: repeat(8, 0.25) },
      { similarity: deltas.map((delta) => 0.25 + delta) },
    ]);
    const { comparisons } = await compare(dataset, sessions);
    expect(comparisons[0]).toMatchObject({ test: "wilcoxon", wins: 7, losses: 1, regressed_examples: [rows[5]] });
    expect(comparisons[0].improved_examples[0]).toBe(rows[7]);
    expect(comparisons[0].p_value).toBeCloseTo(0.015625, 12);
  });

  it("counts what one of the two lacks, and compares the rest", async () => {
    const { dataset, sessions } = await uploaded([{ right: [1, null, 0, 1, null] }, { right: [1, 1, null, 0, null] }]);
    const { comparisons } = await compare(dataset, sessions);
    expect(comparisons[0]).toMatchObject({
      n_paired: 2,
      only_baseline: 1,
      only_comparison: 1,
      wins: 0,
      losses: 1,
      ties: 1,
    });
  });

  it("counts an example with several runs once, with its mean", async () => {
    const { dataset, sessions, rows } = await uploaded([{ right: [1, 0] }]);
    const body = experimentOf(
      2,
      () => [],
      {},
      (index) => rows[index] as string,
    );
    const [first, second] = body.results as [Row, Row];
    const scored = (row: Row, score: number): Row => ({ ...row, evaluation_scores: [{ key: "right", score }] });
    const results = [scored(first, 1), scored(first, 0), scored(first, 0), scored(first, 1), scored(second, 1)];
    const answer = await service.request("POST", "/api/v1/datasets/upload-experiment", {
      ...body,
      dataset_name: undefined,
      dataset_id: dataset,
      results,
    });
    const { comparisons } = await compare(dataset, [...sessions, answer.body.experiment.id]);
    expect(comparisons[0]).toMatchObject({ n_paired: 2, mean_comparison: 0.75, mean_delta: 0.25, wins: 1, losses: 1 });
  });

  it("distinguishes keys for which a lower score is better", async () => {
    const { dataset, sessions, rows } = await uploaded([{ seconds: [3, 3] }, { seconds: [1, 4] }]);
    const config = { feedback_key: "seconds", feedback_config: { type: "continuous" }, is_lower_score_better: true };
    await service.request("POST", "/api/v1/feedback-configs", config);
    const { comparisons } = await compare(dataset, sessions);
    expect(comparisons[0]).toMatchObject({
      is_lower_score_better: true,
      wins: 1,
      losses: 1,
      mean_delta: -0.5,
      improved_examples: [rows[0]],
      regressed_examples: [rows[1]],
    });
  });

  it("counts differences below a threshold as ties, and omits lists and tests on request", async () => {
    const { dataset, sessions } = await uploaded([{ s: [0.5, 0.5, 0.5] }, { s: [0.55, 0.6, 0.9] }]);
    const { comparisons } = await compare(dataset, sessions, { threshold: 0.1, limit: 1, significance: false });
    expect(comparisons[0]).toMatchObject({ wins: 2, ties: 1, ci_low: null, ci_high: null, p_value: null, test: null });
    expect(comparisons[0].improved_examples).toHaveLength(1);
  });

  it("corrects for the number of comparisons in one answer", async () => {
    const better = [...repeat(10, 1), ...repeat(10, 1)];
    const base = [...repeat(10, 0), ...repeat(10, 1)];
    const { dataset, sessions } = await uploaded([
      { a: base, b: base, c: base },
      { a: better, b: base, c: base },
      { a: better, b: better, c: base },
    ]);
    const { comparisons } = await compare(dataset, sessions);
    const p = comparisons.map((row: { p_value: number }) => row.p_value);
    // Exact McNemar of 0 and 10 is 2 / 2^10; Holm multiplies the three smallest of six by 6, and those that follow by less.
    expect(p).toEqual([2 ** -9, 1, 1, 2 ** -9, 2 ** -9, 1]);
    expect(comparisons.map((row: { p_adjusted: number }) => row.p_adjusted)).toEqual([
      6 * 2 ** -9,
      1,
      1,
      6 * 2 ** -9,
      6 * 2 ** -9,
      1,
    ]);
  });

  it("repeats its answer, and recomputes it after a change of feedback", async () => {
    const { dataset, sessions } = await uploaded([{ s: [0.1, 0.4, 0.3] }, { s: [0.2, 0.4, 0.9] }]);
    const first = await compare(dataset, sessions);
    expect(await compare(dataset, sessions)).toEqual(first);
    const query = { session: [sessions[1]], filter: "eq(feedback_score, 0.9)" };
    const { runs } = (await service.request("POST", "/api/v1/runs/query", query)).body;
    const [feedback] = (await service.request("GET", `/api/v1/feedback?run=${runs[0].id}`)).body;
    await service.request("PATCH", `/api/v1/feedback/${feedback.id}`, { score: 0 });
    const { comparisons } = await compare(dataset, sessions);
    expect(comparisons[0]).toMatchObject({ wins: 1, losses: 1, ties: 1 });
    expect(comparisons[0].mean_comparison).toBeCloseTo(0.2, 12);
  });

  describe("a removed example", () => {
    const removed = async () => {
      const lists = [{ s: [0.1, 0.4, 0.3, 0.6] }, { s: [0.2, 0.3, 0.9, 0.6] }];
      const { dataset, sessions, rows } = await uploaded(lists);
      expect((await compare(dataset, sessions)).comparisons[0]).toMatchObject({ n_paired: 4, wins: 2, losses: 1 });
      const answer = await service.request("DELETE", `/api/v1/examples/${rows[2]}`);
      expect(answer.status).toBe(200);
      return { dataset, sessions, rows };
    };

    it("counts neither as better nor as worse, until an upload brings it back", async () => {
      const { dataset, sessions, rows } = await removed();
      const { comparisons } = await compare(dataset, sessions);
      expect(comparisons[0]).toMatchObject({ n_paired: 3, wins: 1, losses: 1, ties: 1, improved_examples: [rows[0]] });
      expect(comparisons[0].mean_baseline).toBeCloseTo((0.1 + 0.4 + 0.6) / 3, 12);
      const again = experimentOf(
        3,
        () => [{ key: "s", score: 0.7 }],
        {},
        (index) => rows[index] as string,
      );
      const body = { ...again, dataset_name: undefined, dataset_id: dataset };
      expect((await service.request("POST", "/api/v1/datasets/upload-experiment", body)).status).toBe(200);
      expect((await compare(dataset, sessions)).comparisons[0]).toMatchObject({ n_paired: 4, wins: 2 });
    });

    it("is not shown side by side, and stays in the statistics of what ran on it", async () => {
      const { dataset, sessions, rows } = await removed();
      const at = `/api/v1/datasets/${dataset}`;
      const ids = async (more: object) => {
        const { body } = await service.request("POST", `${at}/runs`, { session_ids: sessions, ...more });
        return body.map(({ id }: { id: string }) => rows.indexOf(id));
      };
      expect(await ids({})).toEqual([0, 1, 3]);
      expect(await ids({ example_ids: rows.slice(1, 3) })).toEqual([1]);
      expect(await ids({ sort_params: { sort_by: "delta.feedback.s" } })).toEqual([0, 3, 1]);
      const pair = { baseline_session_id: sessions[0], comparison_session_ids: [sessions[1]], feedback_key: "s" };
      const delta = await service.request("POST", `${at}/runs/delta`, pair);
      expect(delta.body.feedback_deltas[sessions[1] as string].improved_examples).toEqual([rows[0]]);
      const session = (await service.request("GET", `/api/v1/sessions/${sessions[1]}`)).body;
      expect([session.run_count, session.feedback_stats.s.n, session.feedback_stats.s.max]).toEqual([4, 4, 0.9]);
    });
  });

  it("refuses experiments that it does not know, or of another dataset", async () => {
    const one = await uploaded([{ s: [1] }]);
    const other = await uploaded([{ s: [1] }]);
    const at = `/api/v1/datasets/${one.dataset}/compare`;
    const body = { baseline_session_id: one.sessions[0], comparison_session_ids: other.sessions };
    expect((await service.request("POST", at, body)).status).toBe(400);
    const unknown = { ...body, comparison_session_ids: [randomUUID()] };
    expect((await service.request("POST", at, unknown)).status).toBe(404);
  });

  describe("side by side", () => {
    const page = async (dataset: string, body: object) =>
      (await service.request("POST", `/api/v1/datasets/${dataset}/runs`, body)).body;

    it("shows each example with the runs of each experiment and their feedback", async () => {
      const { dataset, sessions, rows } = await uploaded([{ s: [0.1, 0.2, 0.3] }, { s: [0.3, 0.2] }]);
      const examples = await page(dataset, { session_ids: sessions });
      expect(examples.map((example: { id: string }) => example.id)).toEqual(rows.slice(0, 3));
      expect(examples.map((example: { runs: object[] }) => example.runs.length)).toEqual([2, 2, 1]);
      const [first, second] = examples[0].runs;
      expect([first.session_id, second.session_id]).toEqual(sessions);
      expect(first).toMatchObject({ outputs: { answer: 1 }, feedbacks: [{ key: "s", score: 0.1 }] });
      const [preview] = await page(dataset, { session_ids: sessions, preview: true, limit: 1 });
      expect(preview.runs[0]).toMatchObject({ outputs: null, outputs_preview: '{"answer":1}', inputs: null });
    });

    it("is whole where it is long", async () => {
      const { dataset, sessions, rows } = await uploaded([{ s: repeat(60, 0.5) }, { s: repeat(60, 1) }]);
      const { text, body, headers } = await service.request("POST", `/api/v1/datasets/${dataset}/runs`, {
        session_ids: sessions,
      });
      // More than one piece of 64 KB.
      expect(text.length).toBeGreaterThan(200_000);
      expect(headers.get("content-type")).toBe("application/json");
      expect(body.map((example: { id: string }) => example.id)).toEqual(rows);
      expect(body.flatMap((example: { runs: object[] }) => example.runs)).toHaveLength(120);
    });

    it("pages, sorts by scores and by differences, and filters by properties of runs", async () => {
      const { dataset, sessions, rows } = await uploaded([{ s: [0.1, 0.9, 0.5] }, { s: [0.9, 0.8, 0.4] }]);
      const ids = async (more: object) =>
        (await page(dataset, { session_ids: sessions, ...more })).map((example: { id: string }) =>
          rows.indexOf(example.id),
        );
      expect(await ids({ offset: 1, limit: 1 })).toEqual([1]);
      expect(await ids({ sort_params: { sort_by: "feedback.s" } })).toEqual([1, 2, 0]);
      expect(await ids({ sort_params: { sort_by: "delta.feedback.s", sort_order: "ASC" } })).toEqual([1, 2, 0]);
      const second = sessions[1] as string;
      expect(await ids({ filters: { [second]: ['and(eq(feedback_key, "s"), gt(feedback_score, 0.5))'] } })).toEqual([
        0, 1,
      ]);
      expect(await ids({ example_ids: [rows[2]] })).toEqual([2]);
    });

    it("lists improved and regressed examples as the original does, also as a stream", async () => {
      const { dataset, sessions, rows } = await uploaded([{ s: [0.1, 0.9, 0.5] }, { s: [0.9, 0.8, 0.5] }]);
      const at = `/api/v1/datasets/${dataset}/runs/delta`;
      const ids = { baseline_session_id: sessions[0], comparison_session_ids: [sessions[1]] };
      const expected = {
        [sessions[1] as string]: { improved_examples: [rows[0]], regressed_examples: [rows[1]] },
      };
      const delta = await service.request("POST", at, { ...ids, feedback_key: "s" });
      expect(delta.body).toEqual({ feedback_deltas: expected });
      const stream = await service.request("POST", `${at}/stream`, { ...ids, feedback_keys: ["s"] });
      expect(stream.text).toBe(
        `event: data\ndata: ${JSON.stringify({ feedback_deltas: { s: expected }, errors: null })}\n\nevent: end\ndata: {}\n\n`,
      );
    });
  });
});
