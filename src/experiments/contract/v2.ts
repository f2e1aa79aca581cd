import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonObject, jsonResponse, optional, withDefault } from "../../platform/contract/fields.ts";
import { datasetParams } from "./datasets.ts";
import { Example } from "./examples.ts";
import { experimentFilters, nullableTime, texts, time, timeText, usage, uuidOrHex } from "./fields.ts";
import { FeedbackStats } from "./sessions.ts";

/** RFC 7807 problem details. */
const problem = z
  .object({ type: z.string(), title: z.string(), status: z.int(), detail: z.string(), instance: z.string().optional() })
  .openapi("ProblemDetails");

const problemResponse = { description: "The reason.", content: { "application/problem+json": { schema: problem } } };
const problems = { 400: problemResponse, 404: problemResponse, 422: problemResponse };

/** A run with the selected fields. */
export const RunV2 = z
  .object({
    id: z.string(),
    name: z.string(),
    run_type: z.string().openapi({ example: "CHAIN" }),
    status: z.enum(["PENDING", "SUCCESS", "ERROR"]),
    start_time: timeText,
    end_time: nullableTime,
    latency_seconds: z.number().nullable(),
    first_token_time: nullableTime,
    error: z.string().nullable(),
    error_preview: z.string().nullable(),
    extra: jsonObject.nullable(),
    metadata: jsonObject,
    events: z.array(jsonObject),
    inputs: jsonObject,
    inputs_preview: z.string().nullable(),
    outputs: jsonObject.nullable(),
    outputs_preview: z.string().nullable(),
    manifest: jsonObject.nullable(),
    parent_run_ids: z.array(z.string()),
    project_id: z.string(),
    trace_id: z.string(),
    thread_id: z.string().nullable(),
    dotted_order: z.string(),
    is_root: z.boolean(),
    reference_example_id: z.string().nullable(),
    reference_dataset_id: z.string().nullable(),
    ...usage.tokens,
    ...usage.details,
    price_model_id: z.null(),
    tags: z.array(z.string()),
    app_path: z.string(),
    attachments: jsonObject,
    thread_evaluation_time: z.null(),
    is_in_dataset: z.boolean(),
    last_queued_at: z.null(),
    share_url: z.null(),
    feedback_stats: FeedbackStats,
  })
  .openapi("RunV2");
export type RunV2 = z.output<typeof RunV2>;

/** The field names in capitals. */
const select = z.enum(Object.keys(RunV2.shape).map((name) => name.toUpperCase()) as [string, ...string[]]);

const RunQueryV2 = z
  .object({
    project_ids: optional(z.array(uuidOrHex).min(1).max(100)),
    reference_dataset_id: optional(uuidOrHex).describe(
      "Selects all experiments of this dataset, as an alternative to `project_ids`.",
    ),
    ids: optional(z.array(uuidOrHex).max(1000)),
    reference_examples: optional(z.array(uuidOrHex).max(1000)),
    trace_id: optional(uuidOrHex),
    run_type: optional(z.string()),
    has_error: optional(z.boolean()),
    is_root: optional(z.boolean()),
    filter: optional(z.string()),
    trace_filter: optional(z.string()),
    tree_filter: optional(z.string()),
    min_start_time: optional(time).describe("Default: no bound. (LangSmith's default is one day ago.)"),
    max_start_time: optional(time),
    cursor: optional(z.string()),
    page_size: withDefault(z.int().min(1).max(1000), 100),
    selects: optional(z.array(select)).describe("The fields to return. The default is `id`."),
    sort_order: withDefault(z.enum(["ASC", "DESC"]), "DESC"),
  })
  .openapi("RunQueryV2");
export type RunQueryV2 = z.output<typeof RunQueryV2>;

const pageOf = (items: z.ZodType) =>
  z.object({ items: z.array(items), has_more: z.boolean(), next_cursor: z.string().optional() });

export const queryRunsV2 = createRoute({
  method: "post",
  path: "/runs/query",
  operationId: "query_runs_v2",
  summary: "Query runs",
  request: { body: jsonBody(RunQueryV2) },
  responses: { 200: jsonResponse(pageOf(RunV2.partial()), "A page of runs."), ...problems },
});

const selects = texts.pipe(z.array(select)).optional();

export const readRunV2 = createRoute({
  method: "get",
  path: "/runs/{run_id}",
  operationId: "read_run_v2",
  summary: "Get a run",
  request: {
    params: z.object({ run_id: uuidOrHex }),
    query: z.object({ project_id: uuidOrHex, start_time: time.optional(), selects }),
  },
  responses: { 200: jsonResponse(RunV2.partial(), "The run."), ...problems },
});

const ExperimentRunsQuery = z
  .object({
    experiment_ids: z.array(uuidOrHex).min(1).max(100),
    example_ids: optional(z.array(uuidOrHex).max(1000)),
    comparative_experiment_id: optional(uuidOrHex),
    filters: experimentFilters,
    selects: optional(z.array(select)),
    sort: optional(z.object({ by: z.string(), order: withDefault(z.enum(["ASC", "DESC"]), "DESC") })),
    cursor: optional(z.string()),
    page_size: withDefault(z.int().min(1).max(1000), 20),
  })
  .openapi("ExperimentRunsQuery");
export type ExperimentRunsQuery = z.output<typeof ExperimentRunsQuery>;

const exampleWithRunsV2 = z
  .object({ ...Example.shape, metadata: jsonObject.nullable(), runs: z.array(RunV2.partial()) })
  .openapi("ExampleWithRunsV2");

export const queryExperimentRuns = createRoute({
  method: "post",
  path: "/datasets/{dataset_id}/experiment-runs",
  operationId: "query_experiment_runs",
  summary: "List examples with several experiments' runs",
  request: { params: datasetParams, body: jsonBody(ExperimentRunsQuery) },
  responses: { 200: jsonResponse(pageOf(exampleWithRunsV2), "A page of examples."), ...problems },
});
