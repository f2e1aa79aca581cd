import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonObject, jsonResponse, optional, withDefault } from "../../platform/contract/fields.ts";
import { datasetParams } from "./datasets.ts";
import { Example } from "./examples.ts";
import { Feedback } from "./feedback.ts";
import { errors, looseUuid, paging, time, timeText, uuids } from "./fields.ts";
import { ExperimentRun } from "./runs.ts";
import { FeedbackStats } from "./sessions.ts";

const tags = ["Comparison"];

/** By experiment id: conditions that its runs must meet. An example is shown when it meets those of each experiment. */
const filters = optional(z.record(z.string(), z.array(z.string())));

const sortParams = z.object({
  sort_by: z.string().openapi({
    description:
      "`feedback.{key}`, `latency` or `error` of the first experiment; behind `delta.` how far the others are off.",
  }),
  sort_order: withDefault(z.enum(["ASC", "DESC"]), "DESC"),
});

const ExamplesWithRunsQuery = z
  .object({
    session_ids: z.array(looseUuid).min(1).max(100),
    offset: withDefault(z.int().min(0), 0),
    limit: optional(z.int().min(1)),
    preview: withDefault(z.boolean(), false).openapi({
      description: "Without inputs and outputs; their beginnings only.",
    }),
    comparative_experiment_id: optional(looseUuid),
    sort_params: optional(sortParams),
    filters,
    example_ids: optional(z.array(looseUuid).max(1000)),
  })
  .openapi("ExamplesWithRunsQuery");
export type ExamplesWithRunsQuery = z.output<typeof ExamplesWithRunsQuery>;

/** An example and what each of the experiments made of it. */
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

export const readExamplesWithRuns = createRoute({
  method: "post",
  path: "/datasets/{dataset_id}/runs",
  operationId: "read_examples_with_runs",
  summary: "Experiments side by side, by example",
  tags,
  request: {
    params: datasetParams,
    query: z.object({ format: z.literal("csv").optional() }),
    body: jsonBody(ExamplesWithRunsQuery),
  },
  responses: { 200: jsonResponse(z.array(ExampleWithRuns), "A page; as CSV all of them."), ...errors(400, 404) },
});

const DeltaQuery = z
  .object({
    baseline_session_id: looseUuid,
    comparison_session_ids: z.array(looseUuid).min(1).max(100),
    feedback_key: z.string(),
    filters,
    offset: withDefault(z.int().min(0), 0),
    limit: withDefault(z.int().min(1).max(100), 100),
    comparative_experiment_id: optional(looseUuid),
  })
  .openapi("FeedbackDeltaQuery");
export type DeltaQuery = z.output<typeof DeltaQuery>;

const delta = z.object({ improved_examples: z.array(z.string()), regressed_examples: z.array(z.string()) });

export const readDelta = createRoute({
  method: "post",
  path: "/datasets/{dataset_id}/runs/delta",
  operationId: "read_delta",
  summary: "Which examples got better and which worse than in the baseline",
  tags,
  request: { params: datasetParams, body: jsonBody(DeltaQuery) },
  responses: {
    200: jsonResponse(z.object({ feedback_deltas: z.record(z.string(), delta) }), "By experiment."),
    ...errors(400, 404),
  },
});

const DeltaStreamQuery = z
  .object({
    baseline_session_id: looseUuid,
    comparison_session_ids: z.array(looseUuid).min(1).max(10),
    feedback_keys: z.array(z.string()).min(1).max(100),
    filters,
  })
  .openapi("FeedbackDeltaStreamQuery");
export type DeltaStreamQuery = z.output<typeof DeltaStreamQuery>;

export const streamDelta = createRoute({
  method: "post",
  path: "/datasets/{dataset_id}/runs/delta/stream",
  operationId: "stream_delta",
  summary: "The same for several keys: an event `data` each, then `end`",
  tags,
  request: { params: datasetParams, body: jsonBody(DeltaStreamQuery) },
  responses: {
    200: { description: "Events.", content: { "text/event-stream": { schema: z.string() } } },
    ...errors(404),
  },
});

const ComparisonQuery = z
  .object({
    baseline_session_id: looseUuid,
    comparison_session_ids: z.array(looseUuid).min(1).max(10),
    feedback_keys: optional(z.array(z.string()).min(1).max(100)).openapi({
      description: "All that the experiments have.",
    }),
    threshold: withDefault(z.number().min(0), 0).openapi({ description: "Differences up to it are ties." }),
    limit: withDefault(z.int().min(0).max(1000), 100).openapi({ description: "Most examples in each of the lists." }),
    significance: withDefault(z.boolean(), true).openapi({
      description: "Intervals and tests, too: 0.1 s for each pair of 10,000 examples, once.",
    }),
  })
  .openapi("ComparisonQuery");
export type ComparisonQuery = z.output<typeof ComparisonQuery>;

/**
 * One experiment against the baseline in one key, over the examples that both have a score for. An example that ran several
 * times counts once, with the mean of its scores.
 */
export const PairComparison = z
  .object({
    session_id: z.string(),
    key: z.string(),
    is_lower_score_better: z.boolean(),
    n_paired: z.int(),
    only_baseline: z.int().openapi({ description: "Examples with a score in the baseline alone." }),
    only_comparison: z.int(),
    mean_baseline: z.number().nullable(),
    mean_comparison: z.number().nullable(),
    mean_delta: z.number().nullable(),
    ci_low: z.number().nullable().openapi({ description: "Of the mean difference: 95 %, paired bootstrap." }),
    ci_high: z.number().nullable(),
    wins: z.int(),
    losses: z.int(),
    ties: z.int(),
    test: z.enum(["mcnemar", "wilcoxon"]).nullable(),
    p_value: z.number().nullable(),
    p_adjusted: z.number().nullable().openapi({ description: "Holm, over all keys and experiments of this answer." }),
    improved_examples: z.array(z.string()).openapi({ description: "The largest improvements first." }),
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

/** Ours: no other API of this kind says whether a difference means anything. */
export const compareExperiments = createRoute({
  method: "post",
  path: "/datasets/{dataset_id}/compare",
  operationId: "compare_experiments",
  summary: "Is it better? Differences to a baseline, with intervals and tests",
  tags,
  request: { params: datasetParams, body: jsonBody(ComparisonQuery) },
  responses: { 200: jsonResponse(Comparison, "A row per experiment and key."), ...errors(404) },
});

const experimentInfo = z.object({ id: z.string(), name: z.string() });

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
    experiments_info: z.array(experimentInfo),
    feedback_stats: FeedbackStats.nullable(),
  })
  .openapi("ComparativeExperiment");
export type ComparativeExperiment = z.output<typeof ComparativeExperiment>;

const ComparativeCreate = z
  .object({
    id: optional(looseUuid),
    experiment_ids: z.array(looseUuid).min(1).max(100),
    name: optional(z.string()),
    description: optional(z.string()),
    reference_dataset_id: optional(looseUuid),
    extra: optional(jsonObject),
    created_at: optional(time),
    modified_at: optional(time),
  })
  .openapi("ComparativeExperimentCreate");
export type ComparativeCreate = z.output<typeof ComparativeCreate>;

export const createComparative = createRoute({
  method: "post",
  path: "/datasets/comparative",
  operationId: "create_comparative",
  summary: "Keep experiments together for comparison",
  tags,
  request: { body: jsonBody(ComparativeCreate) },
  responses: { 200: jsonResponse(ComparativeExperiment, "The comparison."), ...errors(400, 404, 409) },
});

const ComparativeQuery = z.object({
  id: uuids.optional(),
  name: z.string().optional(),
  name_contains: z.string().optional(),
  ...paging,
});
export type ComparativeQuery = z.output<typeof ComparativeQuery>;

export const listComparative = createRoute({
  method: "get",
  path: "/datasets/{dataset_id}/comparative",
  operationId: "list_comparative",
  summary: "Kept comparisons of a dataset",
  tags,
  request: { params: datasetParams, query: ComparativeQuery },
  responses: { 200: jsonResponse(z.array(ComparativeExperiment), "A page."), ...errors(404) },
});

export const deleteComparative = createRoute({
  method: "delete",
  path: "/datasets/comparative/{comparative_experiment_id}",
  operationId: "delete_comparative",
  summary: "Forget a comparison",
  tags,
  request: { params: z.object({ comparative_experiment_id: looseUuid }) },
  responses: {
    200: jsonResponse(z.object({ message: z.string() }), "Forgotten; its experiments stay."),
    ...errors(404),
  },
});
