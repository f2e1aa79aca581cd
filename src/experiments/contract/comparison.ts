import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonObject, jsonResponse, optional, withDefault } from "../../platform/contract/fields.ts";
import { datasetParams } from "./datasets/datasets.ts";
import { Example } from "./datasets/examples.ts";
import { Feedback } from "./feedback/feedback.ts";
import { experimentFilters, idAndName, paging, time, timeText, uuidOrHex } from "./fields.ts";
import { deletedResponse, errors } from "./responses.ts";
import { ExperimentRun } from "./runs.ts";
import { FeedbackStats } from "./sessions.ts";

const sortParams = z.object({
  sort_by: z
    .string()
    .describe(
      "Sorts by `feedback.{key}`, `latency` or `error` of the first experiment. With the prefix `delta.`, as in `delta.latency`, each other experiment is compared with the first one, and the difference with the largest absolute value is used.",
    ),
  sort_order: withDefault(z.enum(["ASC", "DESC"]), "DESC"),
});

const ExamplesWithRunsQuery = z
  .object({
    session_ids: z.array(uuidOrHex).min(1).max(100),
    offset: withDefault(z.int().min(0), 0),
    limit: optional(z.int().min(1)),
    preview: withDefault(z.boolean(), false).describe("Whether to return previews instead of full inputs and outputs."),
    comparative_experiment_id: optional(uuidOrHex),
    sort_params: optional(sortParams),
    filters: experimentFilters,
    example_ids: optional(z.array(uuidOrHex).max(1000)),
  })
  .openapi("ExamplesWithRunsQuery");
export type ExamplesWithRunsQuery = z.output<typeof ExamplesWithRunsQuery>;

export const ExampleWithRuns = Example.extend({
  runs: z.array(
    ExperimentRun.extend({
      inputs: jsonObject.nullable(),
      outputs: jsonObject.nullable(),
      feedbacks: z.array(Feedback),
    }),
  ),
}).openapi("ExampleWithRuns");
export type ExampleWithRuns = z.output<typeof ExampleWithRuns>;

const DeltaQuery = z
  .object({
    baseline_session_id: uuidOrHex,
    comparison_session_ids: z.array(uuidOrHex).min(1).max(100),
    feedback_key: z.string(),
    filters: experimentFilters,
    offset: withDefault(z.int().min(0), 0),
    limit: withDefault(z.int().min(1).max(100), 100),
    comparative_experiment_id: optional(uuidOrHex),
  })
  .openapi("FeedbackDeltaQuery");
export type DeltaQuery = z.output<typeof DeltaQuery>;

const delta = z.object({ improved_examples: z.array(z.string()), regressed_examples: z.array(z.string()) });

const DeltaStreamQuery = z
  .object({
    baseline_session_id: uuidOrHex,
    comparison_session_ids: z.array(uuidOrHex).min(1).max(10),
    feedback_keys: z.array(z.string()).min(1).max(100),
    filters: experimentFilters,
  })
  .openapi("FeedbackDeltaStreamQuery");
export type DeltaStreamQuery = z.output<typeof DeltaStreamQuery>;

const ComparisonQuery = z
  .object({
    baseline_session_id: uuidOrHex,
    comparison_session_ids: z.array(uuidOrHex).min(1).max(10),
    feedback_keys: optional(z.array(z.string()).min(1).max(100)).describe(
      "Feedback keys to compare. Default: all keys with scores.",
    ),
    threshold: withDefault(z.number().min(0), 0).describe("Differences smaller than this value count as ties."),
    limit: withDefault(z.int().min(0).max(1000), 100).describe("The maximum number of IDs in each list of examples."),
    significance: withDefault(z.boolean(), true).describe(
      "Whether to compute confidence intervals and significance tests. With 10,000 examples, this takes about 0.1 s per experiment and feedback key. The results are cached.",
    ),
  })
  .openapi("ComparisonQuery");
export type ComparisonQuery = z.output<typeof ComparisonQuery>;

/**
 * The comparison of one experiment with the baseline for one feedback key, over the examples that have a score in both. An
 * example with several runs counts once, with the mean of its scores.
 */
export const PairComparison = z
  .object({
    session_id: z.string(),
    key: z.string(),
    is_lower_score_better: z.boolean(),
    n_paired: z.int(),
    only_baseline: z.int().describe("The number of examples with a score only in the baseline."),
    only_comparison: z.int(),
    mean_baseline: z.number().nullable(),
    mean_comparison: z.number().nullable(),
    mean_delta: z.number().nullable(),
    ci_low: z
      .number()
      .nullable()
      .describe(
        "The lower bound of the 95% confidence interval of the mean difference. The interval is computed with a paired bootstrap.",
      ),
    ci_high: z.number().nullable(),
    wins: z.int(),
    losses: z.int(),
    ties: z.int(),
    test: z.enum(["mcnemar", "wilcoxon"]).nullable(),
    p_value: z.number().nullable(),
    p_adjusted: z
      .number()
      .nullable()
      .describe("The p-value, adjusted with the Holm method across all keys and experiments in this response."),
    improved_examples: z.array(z.string()).describe("In descending order of improvement."),
    regressed_examples: z.array(z.string()),
  })
  .openapi("PairComparison");
export type PairComparison = z.output<typeof PairComparison>;

const Comparison = z
  .object({
    baseline_session_id: z.string(),
    confidence: z.number(),
    resamples: z.int(),
    seed: z.int(),
    comparisons: z.array(PairComparison),
  })
  .openapi("Comparison");
export type Comparison = z.output<typeof Comparison>;

export const ComparativeExperiment = z
  .object({
    id: z.string(),
    name: z.string().nullable(),
    description: z.string().nullable(),
    tenant_id: z.string(),
    created_at: timeText,
    modified_at: timeText,
    reference_dataset_id: z.string(),
    extra: jsonObject.nullable(),
    experiments_info: z.array(z.object({ id: z.string(), name: z.string() })),
    feedback_stats: FeedbackStats.nullable(),
  })
  .openapi("ComparativeExperiment");
export type ComparativeExperiment = z.output<typeof ComparativeExperiment>;

const ComparativeCreate = z
  .object({
    id: optional(uuidOrHex),
    experiment_ids: z.array(uuidOrHex).min(1).max(100),
    name: optional(z.string()),
    description: optional(z.string()),
    reference_dataset_id: optional(uuidOrHex),
    extra: optional(jsonObject),
    created_at: optional(time),
    modified_at: optional(time),
  })
  .openapi("ComparativeExperimentCreate");
export type ComparativeCreate = z.output<typeof ComparativeCreate>;

const ComparativeQuery = z.object({ ...idAndName, ...paging });
export type ComparativeQuery = z.output<typeof ComparativeQuery>;

export const comparisonRoutes = {
  readExamplesWithRuns: createRoute({
    method: "post",
    path: "/datasets/{dataset_id}/runs",
    operationId: "read_examples_with_runs",
    summary: "List examples with the runs of several experiments",
    request: {
      params: datasetParams,
      query: z.object({ format: z.literal("csv").optional() }),
      body: jsonBody(ExamplesWithRunsQuery),
    },
    responses: {
      200: jsonResponse(z.array(ExampleWithRuns), "A page of examples. With `format=csv`, all examples."),
      ...errors(400, 404),
    },
  }),

  readDelta: createRoute({
    method: "post",
    path: "/datasets/{dataset_id}/runs/delta",
    operationId: "read_delta",
    summary: "List the examples that improved or regressed against the baseline",
    request: { params: datasetParams, body: jsonBody(DeltaQuery) },
    responses: {
      200: jsonResponse(
        z.object({ feedback_deltas: z.record(z.string(), delta) }),
        "Improved and regressed examples, keyed by experiment ID.",
      ),
      ...errors(400, 404),
    },
  }),

  streamDelta: createRoute({
    method: "post",
    path: "/datasets/{dataset_id}/runs/delta/stream",
    operationId: "stream_delta",
    summary: "Stream the improved and regressed examples for several feedback keys",
    request: { params: datasetParams, body: jsonBody(DeltaStreamQuery) },
    responses: {
      200: {
        description: "One `data` event per feedback key, then an `end` event.",
        content: { "text/event-stream": { schema: z.string() } },
      },
      ...errors(404),
    },
  }),

  /** This route is an extension: LangSmith's API has no significance tests. */
  compareExperiments: createRoute({
    method: "post",
    path: "/datasets/{dataset_id}/compare",
    operationId: "compare_experiments",
    summary: "Compare experiments with a baseline. The response includes confidence intervals and significance tests",
    request: { params: datasetParams, body: jsonBody(ComparisonQuery) },
    responses: { 200: jsonResponse(Comparison, "One row per experiment and feedback key."), ...errors(404) },
  }),
};

export const comparativeRoutes = {
  createComparative: createRoute({
    method: "post",
    path: "/datasets/comparative",
    operationId: "create_comparative",
    summary: "Create a comparative experiment",
    request: { body: jsonBody(ComparativeCreate) },
    responses: { 200: jsonResponse(ComparativeExperiment, "The comparative experiment."), ...errors(400, 404, 409) },
  }),

  listComparative: createRoute({
    method: "get",
    path: "/datasets/{dataset_id}/comparative",
    operationId: "list_comparative",
    summary: "List a dataset's comparative experiments",
    request: { params: datasetParams, query: ComparativeQuery },
    responses: {
      200: jsonResponse(z.array(ComparativeExperiment), "A page of comparative experiments."),
      ...errors(404),
    },
  }),

  deleteComparative: createRoute({
    method: "delete",
    path: "/datasets/comparative/{comparative_experiment_id}",
    operationId: "delete_comparative",
    summary: "Delete a comparative experiment",
    request: { params: z.object({ comparative_experiment_id: uuidOrHex }) },
    responses: {
      200: deletedResponse("The comparative experiment was deleted. Its experiments are kept."),
      ...errors(404),
    },
  }),
};
