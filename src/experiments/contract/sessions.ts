import { createRoute, z } from "@hono/zod-openapi";
import {
  jsonBody,
  jsonObject,
  jsonResponse,
  optional,
  queryBoolean,
  queryFlag,
  searchable,
} from "../../platform/contract/fields.ts";
import {
  idAndName,
  indexedName,
  metadataQuery,
  nullableTime,
  paging,
  refused,
  time,
  timeText,
  usage,
  uuidOrHex,
  uuids,
} from "./fields.ts";
import { deletedResponse, errors } from "./responses.ts";

/**
 * The statistics of the feedback of one key. `n` counts all feedback. `avg`, `min`, `max` and the sample `stdev` are computed from the
 * scores: they are null without scores, and `stdev` is also null with one score. `values` counts text values.
 */
const KeyStats = z
  .object({
    n: z.int(),
    avg: z.number().nullable(),
    min: z.number().nullable(),
    max: z.number().nullable(),
    stdev: z.number().nullable(),
    values: z.record(z.string(), z.int()),
    errors: z.int(),
    comments: z.array(z.string()).describe("Up to 10 feedback comments."),
    sources: z.array(z.string()),
    contains_thread_feedback: z.boolean(),
  })
  .openapi("FeedbackStats");
export type KeyStats = z.output<typeof KeyStats>;
export const FeedbackStats = z.record(z.string(), KeyStats);
export type FeedbackStats = z.output<typeof FeedbackStats>;

/** Latencies are in seconds, rates are fractions. All fields are null if the response does not include statistics. */
const statistics = {
  run_count: z.int().nullable(),
  latency_p50: z.number().nullable(),
  latency_p99: z.number().nullable(),
  ...usage.first_tokens,
  ...usage.tokens,
  last_run_start_time: nullableTime,
  last_run_start_time_live: z.null(),
  feedback_stats: FeedbackStats.nullable(),
  session_feedback_stats: FeedbackStats.nullable(),
  run_facets: z.array(jsonObject).nullable().openapi({
    description:
      "Run counts by type, name, tag and metadata key, over the newest 10,000 runs. Each count has a filter expression that selects the runs with this type, name, tag or metadata key. Null if the statistics are not included. Empty if `facets` is not true.",
  }),
  error_rate: z.number().nullable(),
  streaming_rate: z.number().nullable(),
};

/** An experiment. The API calls it a session, the clients call it a project. */
export const Session = z
  .object({
    id: z.string(),
    tenant_id: z.string(),
    name: z.string(),
    description: z.string().nullable(),
    start_time: timeText,
    end_time: nullableTime,
    extra: jsonObject.nullable().describe("`metadata` contains the experiment's metadata."),
    default_dataset_id: z.string().nullable(),
    reference_dataset_id: z.string().nullable(),
    trace_tier: z.string().nullable(),
    test_run_number: z
      .int()
      .nullable()
      .describe("The sequence number of the experiment within its dataset, starting at 1."),
    ...statistics,
  })
  .openapi("TracerSession");
export type Session = z.output<typeof Session>;

const sessionParams = z.object({ session_id: uuidOrHex });

const SessionQuery = z.object({
  ...idAndName,
  reference_dataset: uuids.optional(),
  reference_free: queryBoolean.optional(),
  metadata: metadataQuery.optional(),
  dataset_version: z
    .string()
    .optional()
    .describe(
      "Returns only experiments with this value as `dataset_version` in their metadata, where the clients write it.",
    ),
  include_stats: queryFlag("Whether to include the statistics. If false, they are null."),
  facets: queryFlag("Whether to include `run_facets`. Requires `include_stats`."),
  sort_by: z
    .enum([
      "name",
      "start_time",
      "last_run_start_time",
      "latency_p50",
      "latency_p99",
      "error_rate",
      "feedback",
      "runs_count",
    ])
    .default("start_time"),
  sort_by_desc: z.stringbool().default(true),
  sort_by_feedback_key: z.string().optional(),
  ...paging,
});
export type SessionQuery = z.output<typeof SessionQuery>;

const changes = {
  end_time: optional(time),
  extra: optional(searchable),
  description: optional(z.string()),
  default_dataset_id: optional(uuidOrHex),
  trace_tier: optional(z.enum(["longlived", "shortlived"])).describe(
    "`shortlived`: traces expire after the number of days in `THREADMILL_TRACE_DAYS`. An experiment is always `longlived`.",
  ),
};

const SessionCreate = z
  .object({
    ...changes,
    id: optional(uuidOrHex),
    name: optional(indexedName),
    start_time: optional(time),
    reference_dataset_id: optional(uuidOrHex),
  })
  .openapi("TracerSessionCreate");
export type SessionCreate = z.output<typeof SessionCreate>;

/** Null keeps the value: the official clients send null for every field that their caller omits. */
const SessionUpdate = z.object({ ...changes, name: optional(indexedName) }).openapi("TracerSessionUpdate");
export type SessionUpdate = z.output<typeof SessionUpdate>;

export const sessionRoutes = {
  listSessions: createRoute({
    method: "get",
    path: "/sessions",
    operationId: "list_sessions",
    summary: "List experiments",
    request: { query: SessionQuery },
    responses: { 200: jsonResponse(z.array(Session), "A page of experiments."), ...errors() },
  }),

  createSession: createRoute({
    method: "post",
    path: "/sessions",
    operationId: "create_session",
    summary: "Create an experiment without runs",
    request: {
      query: z.object({ upsert: queryFlag("If an experiment with this name exists, return it.") }),
      body: jsonBody(SessionCreate),
    },
    responses: { 200: jsonResponse(Session, "The experiment."), ...errors(404, 409) },
  }),

  readSession: createRoute({
    method: "get",
    path: "/sessions/{session_id}",
    operationId: "read_session",
    summary: "Get an experiment with its statistics",
    request: {
      params: sessionParams,
      query: z.object({
        include_stats: queryBoolean.default(true).openapi({ default: true }),
        stats_start_time: refused("is not supported: the statistics cover all runs"),
      }),
    },
    responses: { 200: jsonResponse(Session, "The experiment."), ...errors(404) },
  }),

  updateSession: createRoute({
    method: "patch",
    path: "/sessions/{session_id}",
    operationId: "update_session",
    summary: "Update an experiment",
    request: { params: sessionParams, body: jsonBody(SessionUpdate) },
    responses: { 200: jsonResponse(Session, "The updated experiment."), ...errors(404, 409) },
  }),

  deleteSession: createRoute({
    method: "delete",
    path: "/sessions/{session_id}",
    operationId: "delete_session",
    summary: "Delete an experiment, including its runs and feedback",
    request: { params: sessionParams },
    responses: { 200: deletedResponse("The experiment was deleted."), ...errors(404) },
  }),
};
