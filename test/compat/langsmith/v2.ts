import { beforeAll, describe, expect, it } from "vitest";
import type { Row } from "../../experiments/experiment.ts";
import {
  type Anything,
  feedbackStatistics,
  type GetTarget,
  graded,
  listed,
  START,
  scoresOf,
  TIME,
  UUID,
  unique,
  upload,
  wire,
} from "./support.ts";

const SELECTS = [
  "ID",
  "NAME",
  "RUN_TYPE",
  "STATUS",
  "START_TIME",
  "END_TIME",
  "LATENCY_SECONDS",
  "FIRST_TOKEN_TIME",
  "ERROR",
  "ERROR_PREVIEW",
  "EXTRA",
  "METADATA",
  "EVENTS",
  "INPUTS",
  "INPUTS_PREVIEW",
  "OUTPUTS",
  "OUTPUTS_PREVIEW",
  "MANIFEST",
  "PARENT_RUN_IDS",
  "PROJECT_ID",
  "TRACE_ID",
  "THREAD_ID",
  "DOTTED_ORDER",
  "IS_ROOT",
  "REFERENCE_EXAMPLE_ID",
  "REFERENCE_DATASET_ID",
  "TOTAL_TOKENS",
  "PROMPT_TOKENS",
  "COMPLETION_TOKENS",
  "TOTAL_COST",
  "PROMPT_COST",
  "COMPLETION_COST",
  "PROMPT_TOKEN_DETAILS",
  "COMPLETION_TOKEN_DETAILS",
  "PROMPT_COST_DETAILS",
  "COMPLETION_COST_DETAILS",
  "PRICE_MODEL_ID",
  "TAGS",
  "APP_PATH",
  "ATTACHMENTS",
  "THREAD_EVALUATION_TIME",
  "IS_IN_DATASET",
  "LAST_QUEUED_AT",
  "SHARE_URL",
  "FEEDBACK_STATS",
] as const;

const problem = (status: number, detail: string) =>
  expect.objectContaining({
    status,
    error: expect.objectContaining({ type: "about:blank", status, detail: expect.stringContaining(detail) }),
  });

export function version2Scenarios(target: GetTarget): void {
  const dataset_name = `version 2 ${unique()}`;
  const bodies = [graded(23, { dataset_name }), graded(23, { dataset_name })] as const;
  bodies[1].results = bodies[0].results.map((row, index) => ({
    ...row,
    actual_outputs: { other: index },
    evaluation_scores: [{ key: "correct", score: index / 22 }],
  }));
  const rowIds = bodies[0].results.map(({ row_id }) => row_id);

  describe("the resources of version 2", () => {
    let dataset: Anything;
    let one: Anything;
    let two: Anything;
    beforeAll(async () => {
      ({ dataset, experiment: one } = await upload(target(), bodies[0]));
      ({ experiment: two } = await upload(target(), bodies[1]));
    });

    it("return the ids of runs, page by page", async () => {
      const { client } = target();
      const page = await client.runs.query({ project_ids: [one.id], page_size: 10 });
      expect(page.items).toHaveLength(10);
      for (const run of page.items) expect(run).toEqual({ id: UUID });
      const all = await listed(client.runs.query({ project_ids: [one.id], page_size: 10 }));
      expect(new Set(all.map(({ id }) => id)).size).toBe(23);
      expect(all).toHaveLength(23);
      const pages = await listed((await client.runs.query({ project_ids: [one.id], page_size: 10 })).iterPages());
      expect(pages.map(({ items }) => items.length)).toEqual([10, 10, 3]);
    });

    it("return every field of a run that can be selected", async () => {
      const { client } = target();
      const row = bodies[0].results[4] as Row;
      const query = { project_ids: [one.id], reference_examples: [row.row_id] };
      const [run] = await listed(client.runs.query({ ...query, selects: [...SELECTS] }));
      const id = run.id;
      const nothing = Object.fromEntries(
        SELECTS.filter((name) => /TOKEN|COST|PRICE|SHARE|QUEUED|EVALUATION|MANIFEST|THREAD/.test(name)).map((name) => [
          name.toLowerCase(),
          null,
        ]),
      );
      const expected = {
        ...nothing,
        id,
        name: "even",
        run_type: "CHAIN",
        status: "ERROR",
        start_time: wire(row.start_time),
        end_time: wire(row.end_time),
        latency_seconds: (Date.parse(row.end_time) - Date.parse(row.start_time)) / 1000,
        error: "Failed at 4",
        error_preview: "Failed at 4",
        extra: { metadata: row.run_metadata },
        metadata: row.run_metadata,
        events: [],
        inputs: row.inputs,
        inputs_preview: "What is 4 and 4?",
        outputs: row.actual_outputs,
        outputs_preview: JSON.stringify(row.actual_outputs),
        parent_run_ids: [],
        project_id: one.id,
        trace_id: id,
        dotted_order: `20260101T000000004000Z${id}`,
        is_root: true,
        reference_example_id: row.row_id,
        reference_dataset_id: dataset.id,
        tags: [],
        app_path: `/o/${dataset.tenant_id}/projects/p/${one.id}/r/${id}`,
        attachments: {},
        is_in_dataset: true,
        feedback_stats: feedbackStatistics(scoresOf([row])),
      };
      expect(run).toEqual(expected);
      const given = { project_id: one.id, start_time: row.start_time };
      expect(await client.runs.retrieve(id, { ...given, selects: [...SELECTS] })).toEqual(expected);
      expect(await client.runs.retrieve(id, given)).toEqual({ id });
      expect(await client.runs.retrieve(id, { ...given, selects: ["STATUS"] })).toEqual({ status: "ERROR" });
    });

    it("find runs by the given filters", async () => {
      const { client } = target();
      const found = async (query: Parameters<typeof client.runs.query>[0]) => {
        const given = { project_ids: [one.id], selects: ["REFERENCE_EXAMPLE_ID" as const], ...query };
        const runs = await listed(client.runs.query(given));
        return rowIds.flatMap((id, index) => runs.filter((run) => run.reference_example_id === id).map(() => index));
      };
      expect(await found({ has_error: true })).toEqual([4, 13, 22]);
      expect(await found({ has_error: false })).toHaveLength(20);
      expect(await found({ filter: 'and(eq(feedback_key, "tone"), eq(feedback_value, "dry"))' })).toEqual([
        0, 4, 8, 12, 16, 20,
      ]);
      expect(await found({ is_root: false })).toEqual([]);
      expect(await found({ run_type: "LLM" })).toEqual([]);
      expect(await found({ run_type: "CHAIN", max_start_time: new Date(START + 2).toISOString() })).toEqual([0, 1, 2]);
      expect(await found({ min_start_time: new Date(START + 21).toISOString() })).toEqual([21, 22]);
      expect(await found({ project_ids: [one.id, two.id], reference_examples: [rowIds[7] as string] })).toEqual([7, 7]);
      expect(await found({ project_ids: undefined, reference_dataset_id: dataset.id })).toHaveLength(46);
    });

    it("show experiments side by side, page by page", async () => {
      const { client } = target();
      const { experimentRuns } = client.datasets;
      const experiment_ids = [two.id, one.id];
      const selects = ["OUTPUTS" as const, "PROJECT_ID" as const];
      const page = await experimentRuns.query(dataset.id, { experiment_ids, page_size: 10, selects });
      expect(page.items).toHaveLength(10);
      const [row] = bodies[0].results as [Row];
      expect(page.items[0]).toEqual({
        id: row.row_id,
        dataset_id: dataset.id,
        name: "#1",
        inputs: row.inputs,
        outputs: row.expected_outputs,
        metadata: { dataset_split: ["base"] },
        source_run_id: null,
        attachment_urls: null,
        created_at: TIME,
        modified_at: TIME,
        runs: [
          { outputs: { other: 0 }, project_id: two.id },
          { outputs: row.actual_outputs, project_id: one.id },
        ],
      });
      const all = await listed(experimentRuns.query(dataset.id, { experiment_ids, page_size: 10 }));
      expect(all.map(({ id }) => id)).toEqual(rowIds);
      for (const { runs } of all) expect(runs).toEqual([{ id: UUID }, { id: UUID }]);
    });

    it("show the requested examples, in the order of a score", async () => {
      const { client } = target();
      const found = async (query: object) => {
        const body = { experiment_ids: [two.id, one.id], ...query };
        return (await listed(client.datasets.experimentRuns.query(dataset.id, body))).map(({ id }) =>
          rowIds.indexOf(id),
        );
      };
      const numbers = rowIds.map((_, index) => index);
      expect(await found({ sort: { by: "feedback.correct", order: "ASC" } })).toEqual(numbers);
      expect(await found({ sort: { by: "correct" } })).toEqual(numbers.toReversed());
      expect(await found({ example_ids: [rowIds[5], rowIds[2]] })).toEqual([2, 5]);
      expect(await found({ filters: { [one.id]: ['eq(status, "error")'] } })).toEqual([4, 13, 22]);
      expect(
        await found({ filters: { [one.id]: ['eq(status, "error")'], [two.id]: ["gt(feedback_score, 0.5)"] } }),
      ).toEqual([13, 22]);
    });

    it("report errors in the format of RFC 7807", async () => {
      const { client } = target();
      const id = unique();
      await expect(client.runs.retrieve(id, { project_id: one.id })).rejects.toEqual(problem(404, "Run not found"));
      const [{ id: runId }] = await listed(client.runs.query({ project_ids: [one.id] }));
      const elsewhere = client.runs.retrieve(runId, { project_id: two.id });
      await expect(elsewhere).rejects.toEqual(problem(404, "Run not found"));
      const query = (body: object) => listed(client.runs.query(body));
      await expect(query({ project_ids: [id] })).rejects.toEqual(problem(404, "Session not found"));
      await expect(query({})).rejects.toEqual(problem(422, "project_ids"));
      await expect(query({ project_ids: [one.id], page_size: 1001 })).rejects.toEqual(problem(422, "page_size"));
      await expect(query({ project_ids: [one.id], filter: "eq(" })).rejects.toEqual(problem(400, "At 3"));
      await expect(query({ project_ids: [one.id], cursor: "x" })).rejects.toEqual(problem(400, "cursor"));
      const sideBySide = listed(client.datasets.experimentRuns.query(id, { experiment_ids: [one.id] }));
      await expect(sideBySide).rejects.toEqual(problem(404, "Dataset not found"));
    });
  });
}
