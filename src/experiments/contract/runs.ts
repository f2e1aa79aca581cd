import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonObject, jsonResponse, nullable, optional, withDefault } from "../../platform/contract/fields.ts";
import { nullableTime, time, timeText, usage, uuidOrHex, uuids } from "./fields.ts";
import { errors } from "./responses.ts";
import { FeedbackStats } from "./sessions.ts";

/**
 * A run of a trace, or an uploaded execution on one example, which has no children and no token counts. Tokens, costs and first token time
 * include all descendants.
 */
export const ExperimentRun = z
  .object({
    id: z.string(),
    name: z.string(),
    run_type: z.string().openapi({ example: "chain" }),
    status: z.enum(["pending", "success", "error"]),
    start_time: timeText,
    end_time: nullableTime,
    error: z.string().nullable(),
    inputs: jsonObject.nullable(),
    inputs_preview: z.string().nullable(),
    outputs: jsonObject.nullable(),
    outputs_preview: z.string().nullable(),
    extra: jsonObject.nullable(),
    events: z.array(jsonObject).nullable(),
    tags: z.array(z.string()).nullable(),
    serialized: jsonObject.nullable(),
    execution_order: z.int(),
    trace_id: z.string(),
    dotted_order: z.string(),
    parent_run_id: z.string().nullable(),
    parent_run_ids: z.array(z.string()).openapi({ description: "IDs of the ancestors, from the root to the parent." }),
    child_run_ids: z
      .array(z.string())
      .nullable()
      .openapi({ description: "IDs of all descendants. Null for a traced run in a list of runs." }),
    direct_child_run_ids: z
      .array(z.string())
      .nullable()
      .openapi({ description: "IDs of the children. Null for a traced run in a list of runs." }),
    session_id: z.string(),
    reference_example_id: z.string().nullable(),
    reference_dataset_id: z.string().nullable(),
    feedback_stats: FeedbackStats.nullable(),
    total_tokens: z.int(),
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    ...usage.costs,
    ...usage.details,
    first_token_time: nullableTime,
    s3_urls: jsonObject.nullable().openapi({ description: "The attachments, keyed by `attachment.{name}`." }),
    app_path: z.string(),
    in_dataset: z.boolean(),
    share_token: nullable(z.string()),
    trace_tier: z.string().nullable(),
    thread_id: z.string().nullable(),
  })
  .openapi("Run");
export type ExperimentRun = z.output<typeof ExperimentRun>;

export const runParams = z.object({ run_id: uuidOrHex });

const optionalTime = optional(time);

/** `trace_filter` applies to the root of the trace, `tree_filter` to any run of it. An uploaded run is the only run of its trace. */
const runFilters = {
  id: optional(uuids),
  trace: optional(uuidOrHex),
  parent_run: optional(uuidOrHex),
  run_type: optional(z.string()),
  session: optional(uuids),
  reference_example: optional(uuids),
  start_time: optionalTime.describe("Returns only runs that started at or after this time."),
  end_time: optionalTime.describe("Returns only runs that started at or before this time."),
  error: optional(z.boolean()),
  query: optional(z.string()).describe("Words to search for in the runs."),
  filter: optional(z.string()).describe('A filter expression, for example `and(eq(status, "error"), gt(latency, 5))`.'),
  trace_filter: optional(z.string()),
  tree_filter: optional(z.string()),
  search_filter: optional(z.string()),
  is_root: optional(z.boolean()),
  execution_order: optional(z.int()).openapi({ description: "`1` returns only root runs." }),
};

export const RunQuery = z
  .object({
    ...runFilters,
    cursor: optional(z.string()),
    limit: withDefault(z.int().min(1), 100).describe(
      "Maximum number of runs per page. Values above 100 are treated as 100. Use `cursor` to get the next page.",
    ),
    select: optional(z.array(z.string())).describe(
      "The fields to return in addition to `id`, `name`, `run_type`, `start_time` and `trace_id`. Default: all fields. Unknown fields are ignored.",
    ),
    order: withDefault(z.enum(["asc", "desc"]), "desc").describe("Sort order. The runs are sorted by start time."),
  })
  .openapi("RunQuery");
export type RunQuery = z.output<typeof RunQuery>;

export const RunPage = z
  .object({
    runs: z.array(ExperimentRun.partial()),
    cursors: z.object({ next: z.string().nullable(), prev: z.null() }),
    search_cursors: z.null(),
    parsed_query: z.string().nullable(),
  })
  .openapi("ListRunsResponse");

const RunStatsQuery = z.object(runFilters).openapi("RunStatsQuery");
export type RunStatsQuery = z.output<typeof RunStatsQuery>;

export const RunStats = z
  .object({
    run_count: z.int(),
    latency_p50: z.number().nullable(),
    latency_p99: z.number().nullable(),
    ...usage.first_tokens,
    ...usage.tokens,
    median_tokens: z.number().nullable(),
    last_run_start_time: nullableTime,
    feedback_stats: FeedbackStats,
    run_facets: z.array(jsonObject),
    error_rate: z.number().nullable(),
    streaming_rate: z.number().nullable(),
  })
  .openapi("RunStats");
export type RunStats = z.output<typeof RunStats>;

export const runRoutes = {
  queryRuns: createRoute({
    method: "post",
    path: "/runs/query",
    operationId: "query_runs",
    summary: "Query runs",
    request: { body: jsonBody(RunQuery) },
    responses: { 200: jsonResponse(RunPage, "A page of runs."), ...errors(400) },
  }),

  readRun: createRoute({
    method: "get",
    path: "/runs/{run_id}",
    operationId: "read_run",
    summary: "Get a run",
    request: { params: runParams },
    responses: { 200: jsonResponse(ExperimentRun, "The run."), ...errors(404) },
  }),

  readRunStats: createRoute({
    method: "post",
    path: "/runs/stats",
    operationId: "run_stats",
    summary: "Get run statistics",
    request: { body: jsonBody(RunStatsQuery) },
    responses: { 200: jsonResponse(RunStats, "The statistics."), ...errors(400) },
  }),
};
