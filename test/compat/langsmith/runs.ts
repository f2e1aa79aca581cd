import { beforeAll, describe, expect, it } from "vitest";
import type { Row } from "../../experiments/experiment.ts";
import {
  type Anything,
  feedbackStatistics,
  type GetTarget,
  graded,
  listed,
  notFound,
  refused,
  START,
  scoresOf,
  statisticsOf,
  TIME,
  UUID,
  unique,
  upload,
  wire,
} from "./support.ts";

/** What the client asks for when its caller does not say. */
const SELECTED = [
  "app_path",
  "completion_cost",
  "completion_tokens",
  "dotted_order",
  "end_time",
  "error",
  "events",
  "extra",
  "feedback_stats",
  "first_token_time",
  "id",
  "inputs",
  "name",
  "outputs",
  "parent_run_id",
  "parent_run_ids",
  "prompt_cost",
  "prompt_tokens",
  "reference_example_id",
  "run_type",
  "session_id",
  "start_time",
  "status",
  "tags",
  "total_cost",
  "total_tokens",
  "trace_id",
];

export function runScenarios(target: GetTarget): void {
  describe("of an experiment of 250 rows", () => {
    const body = graded(250);
    let dataset: Anything;
    let experiment: Anything;
    beforeAll(async () => {
      ({ dataset, experiment } = await upload(target(), body));
    });

    type Query = Omit<Parameters<ReturnType<GetTarget>["client"]["listRuns"]>[0], "projectId">;
    const runs = (query: Query = {}) => listed(target().client.listRuns({ projectId: experiment.id, ...query }));
    const idsOfRows = async (query: Query) => (await runs(query)).map((run) => run.reference_example_id);
    const rowIds = (rows: Row[] = body.results) => rows.map(({ row_id }) => row_id);
    const where = (holds: (row: Row, index: number) => boolean) => rowIds(body.results.filter(holds));

    describe("runs", () => {
      it("are listed completely, each once, latest first", async () => {
        const all = await runs();
        expect(all.map((run) => run.reference_example_id)).toEqual(rowIds().reverse());
        for (const run of all) expect(Object.keys(run).sort()).toEqual(SELECTED);
        expect(await idsOfRows({ order: "asc" })).toEqual(rowIds());
      });

      it("are returned in the requested number, even if it exceeds a page", async () => {
        expect(await idsOfRows({ limit: 3, order: "asc" })).toEqual(rowIds().slice(0, 3));
        expect(await idsOfRows({ limit: 150, order: "asc" })).toEqual(rowIds().slice(0, 150));
      });

      it("are all roots", async () => {
        expect(await runs({ isRoot: true })).toHaveLength(250);
        expect(await runs({ isRoot: false })).toEqual([]);
      });

      it("are found by their errors, examples, ids, traces, times, types and words", async () => {
        const [row] = body.results as [Row];
        const failed = where(({ error }) => error !== undefined);
        expect((await idsOfRows({ error: true, order: "asc" })).sort()).toEqual(failed.toSorted());
        expect(await idsOfRows({ error: false })).toHaveLength(250 - failed.length);
        expect(await idsOfRows({ referenceExampleId: row.row_id })).toEqual([row.row_id]);
        const [first, second] = await runs({ order: "asc", limit: 2 });
        expect(await idsOfRows({ id: [second.id] })).toEqual([second.reference_example_id]);
        expect(await idsOfRows({ traceId: first.id })).toEqual([row.row_id]);
        expect(await idsOfRows({ startTime: new Date(START + 248), order: "asc" })).toEqual(rowIds().slice(248));
        expect(await idsOfRows({ runType: "llm" })).toEqual([]);
        expect(await runs({ runType: "chain" })).toHaveLength(250);
        expect(await idsOfRows({ query: "IS what failed" })).toEqual(failed.toReversed());
        expect(await runs({ parentRunId: first.id })).toEqual([]);
        const byName = target().client.listRuns({ projectName: body.experiment_name, limit: 2 });
        expect(await listed(byName)).toHaveLength(2);
      });

      it.each<[string, (row: Row, index: number) => boolean]>([
        ['eq(status, "error")', ({ error }) => error !== undefined],
        ["neq(error, null)", ({ error }) => error !== undefined],
        ['eq(name, "odd")', (_, index) => index % 2 === 1],
        ['gt(latency, "0.9s")', (row) => Date.parse(row.end_time) - Date.parse(row.start_time) > 900],
        [
          'and(eq(run_type, "chain"), lte(latency, 0.1))',
          (r) => Date.parse(r.end_time) - Date.parse(r.start_time) <= 100,
        ],
        ['and(eq(feedback_key, "correct"), eq(feedback_score, 0))', (_, index) => index % 3 === 0],
        ['and(eq(feedback_key, "tone"), eq(feedback_value, "dry"))', (_, index) => index % 4 === 0],
        ['and(eq(metadata_key, "half"), eq(metadata_value, "first"))', (_, index) => index < 125],
        ["has(metadata, '{\"index\": 7}')", (_, index) => index === 7],
        ['gte(start_time, "2026-01-01T00:00:00.200Z")', (_, index) => index >= 200],
        ["or(eq(name, 'even'), and(eq(metadata_key, 'index'), lt(metadata_value, 5)))", (_, i) => i % 2 === 0 || i < 5],
        ['search("ODD at failed")', ({ error }, index) => error !== undefined && index % 2 === 1],
        ['not(in(name, ["odd", "even"]))', () => false],
      ])("that %s are found", async (filter, holds) => {
        expect(await idsOfRows({ filter, order: "asc" })).toEqual(where(holds));
        expect(await idsOfRows({ traceFilter: filter, order: "asc" })).toEqual(where(holds));
        expect(await idsOfRows({ treeFilter: filter, order: "asc" })).toEqual(where(holds));
      });

      it("are not searched with an invalid expression", async () => {
        await expect(runs({ filter: 'eq(status "error")' })).rejects.toEqual(refused(400, "At 10"));
      });

      it("have the fields that were selected", async () => {
        const [run] = await runs({ select: ["latency", "feedback_stats"], limit: 1, order: "asc" });
        const always = { id: UUID, trace_id: UUID, name: "even", run_type: "chain", start_time: TIME };
        const end_time = undefined; // the client's own
        const feedback_stats = feedbackStatistics(scoresOf(body.results.slice(0, 1)));
        expect(run).toEqual({ ...always, end_time, feedback_stats });
      });

      it("have statistics, of all runs or of a selection", async () => {
        const { client } = target();
        const statistics = (rows: Row[]) => {
          const { session_feedback_stats: _, last_run_start_time_live: __, ...of } = statisticsOf(rows);
          return { ...of, median_tokens: null };
        };
        const projectIds = [experiment.id];
        expect(await client.getRunStats({ projectIds })).toEqual(statistics(body.results));
        const failed = body.results.filter(({ error }) => error !== undefined);
        expect(await client.getRunStats({ projectIds, error: true })).toEqual(statistics(failed));
        const odd = body.results.filter((_, index) => index % 2 === 1);
        const query = { projectNames: [body.experiment_name], filter: 'eq(name, "odd")', isRoot: true };
        expect(await client.getRunStats(query)).toEqual(statistics(odd));
        const none = await client.getRunStats({ projectIds, isRoot: false });
        expect(none).toMatchObject({ run_count: 0, latency_p50: null, error_rate: null, feedback_stats: {} });
      });
    });

    describe("a run", () => {
      it("is read with all fields of its row", async () => {
        const { client } = target();
        const row = body.results[4] as Row;
        const [{ id }] = await runs({ referenceExampleId: row.row_id });
        expect(await client.readRun(id)).toEqual({
          id,
          name: "even",
          run_type: "chain",
          status: "error",
          start_time: wire(row.start_time),
          end_time: wire(row.end_time),
          error: "Failed at 4",
          inputs: row.inputs,
          inputs_preview: "What is 4 and 4?",
          outputs: row.actual_outputs,
          outputs_preview: JSON.stringify(row.actual_outputs),
          extra: { metadata: row.run_metadata },
          events: [],
          tags: [],
          serialized: null,
          execution_order: 1,
          trace_id: id,
          dotted_order: `20260101T000000004000Z${id}`,
          parent_run_id: null,
          parent_run_ids: [],
          child_run_ids: [],
          direct_child_run_ids: [],
          session_id: experiment.id,
          reference_example_id: row.row_id,
          reference_dataset_id: dataset.id,
          feedback_stats: feedbackStatistics(scoresOf([row])),
          total_tokens: 0,
          prompt_tokens: 0,
          completion_tokens: 0,
          total_cost: null,
          prompt_cost: null,
          completion_cost: null,
          prompt_token_details: null,
          completion_token_details: null,
          prompt_cost_details: null,
          completion_cost_details: null,
          first_token_time: null,
          s3_urls: null,
          app_path: `/o/${dataset.tenant_id}/projects/p/${experiment.id}/r/${id}`,
          in_dataset: true,
          share_token: null,
          trace_tier: "longlived",
          thread_id: null,
        });
      });

      it("of a row with only the required fields has nulls, and a name", async () => {
        const { client } = target();
        const [{ row_id, inputs, start_time, end_time }] = body.results as [Row];
        const few = { row_id: unique(), inputs, start_time, end_time };
        const nulls = {
          ...few,
          row_id,
          expected_outputs: null,
          actual_outputs: null,
          evaluation_scores: null,
          run_name: null,
          error: null,
          run_metadata: null,
        };
        const { experiment: sparse } = await upload(target(), { ...graded(0), results: [few, nulls] });
        for (const { id } of await listed(client.listRuns({ projectId: sparse.id }))) {
          const read = { name: expect.stringMatching(/./), status: "success", error: null, outputs: null };
          expect(await client.readRun(id)).toMatchObject({
            ...read,
            outputs_preview: null,
            extra: { metadata: {} },
            feedback_stats: {},
          });
        }
      });

      it("has no children, even when they are requested", async () => {
        const { client } = target();
        const [run] = await runs({ limit: 1 });
        expect(await client.readRun(run.id, { loadChildRuns: true })).toMatchObject({ id: run.id, child_runs: [] });
      });

      it("has a page in the web app", async () => {
        const { client, webUrl } = target();
        const [run] = await runs({ limit: 1 });
        const url = `${webUrl}/o/${dataset.tenant_id}/projects/p/${experiment.id}/r/${run.id}`;
        expect(await client.getRunUrl({ runId: run.id })).toBe(url);
        expect(await client.getRunUrl({ run })).toBe(`${url}?poll=true`);
      });

      it("that does not exist is not found", async () => {
        const { client } = target();
        await expect(client.readRun(unique())).rejects.toEqual(notFound("Run"));
        await expect(client.getRunUrl({ runId: unique() })).rejects.toEqual(notFound("Run"));
        expect(await listed(client.listRuns({ projectId: unique() }))).toEqual([]);
      });
    });
  });
}
