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
import { errors, looseUuid, metadataQuery, nullableTime, paging, time, timeText, unsaid, uuids } from "./fields.ts";

const tags = ["Experiments"];

/**
 * What the feedback of one key adds up to. `n` counts all of it; `avg`, `min`, `max` and `stdev` (of the sample) are of the
 * scores and null without any (`stdev` without two); `values` counts texts.
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
    comments: z.array(z.string()).openapi({ description: "Up to 10 of them." }),
    sources: z.array(z.string()),
    contains_thread_feedback: z.boolean(),
  })
  .openapi("FeedbackStats");
export type KeyStats = z.output<typeof KeyStats>;
export const FeedbackStats = z.record(z.string(), KeyStats);
export type FeedbackStats = z.output<typeof FeedbackStats>;

/** What an experiment adds up to. Latencies are seconds, rates fractions. All null where nobody asked for statistics. */
const statistics = {
  run_count: z.int().nullable(),
  latency_p50: z.number().nullable(),
  latency_p99: z.number().nullable(),
  ...unsaid.first_tokens,
  ...unsaid.tokens,
  last_run_start_time: nullableTime,
  last_run_start_time_live: z.null(),
  feedback_stats: FeedbackStats.nullable(),
  session_feedback_stats: FeedbackStats.nullable(),
  run_facets: z.array(jsonObject).nullable(),
  error_rate: z.number().nullable(),
  streaming_rate: z.number().nullable(),
};

/** An experiment. The wire calls it a session, and the clients a project. */
export const Session = z
  .object({
    id: z.string(),
    tenant_id: z.string(),
    name: z.string(),
    description: z.string().nullable(),
    start_time: timeText,
    end_time: nullableTime,
    extra: jsonObject.nullable().openapi({ description: "`metadata` in it is what was given with the upload." }),
    default_dataset_id: z.string().nullable(),
    reference_dataset_id: z.string().nullable(),
    trace_tier: z.string().nullable(),
    test_run_number: z.int().nullable().openapi({ description: "1, 2, 3 ... within the dataset." }),
    ...statistics,
  })
  .openapi("TracerSession");
export type Session = z.output<typeof Session>;

const sessionParams = z.object({ session_id: looseUuid });

const SessionQuery = z.object({
  id: uuids.optional(),
  name: z.string().optional(),
  name_contains: z.string().optional(),
  reference_dataset: uuids.optional(),
  reference_free: queryBoolean.optional(),
  metadata: metadataQuery.optional(),
  include_stats: queryFlag("Statistics, too; they are null otherwise."),
  facets: queryFlag("`run_facets`, too."),
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

export const listSessions = createRoute({
  method: "get",
  path: "/sessions",
  operationId: "list_sessions",
  summary: "Find experiments",
  tags,
  request: { query: SessionQuery },
  responses: { 200: jsonResponse(z.array(Session), "A page."), ...errors() },
});

const changes = {
  end_time: optional(time),
  extra: optional(searchable),
  description: optional(z.string()),
  default_dataset_id: optional(looseUuid),
  trace_tier: optional(z.enum(["longlived", "shortlived"])),
};

const SessionCreate = z
  .object({
    ...changes,
    id: optional(looseUuid),
    name: optional(z.string().min(1).max(1000)),
    start_time: optional(time),
    reference_dataset_id: optional(looseUuid),
  })
  .openapi("TracerSessionCreate");
export type SessionCreate = z.output<typeof SessionCreate>;

export const createSession = createRoute({
  method: "post",
  path: "/sessions",
  operationId: "create_session",
  summary: "Make an experiment without runs",
  tags,
  request: {
    query: z.object({ upsert: queryFlag("Answer the one of that name where there is one.") }),
    body: jsonBody(SessionCreate),
  },
  responses: { 200: jsonResponse(Session, "The experiment."), ...errors(404, 409) },
});

export const readSession = createRoute({
  method: "get",
  path: "/sessions/{session_id}",
  operationId: "read_session",
  summary: "One experiment, with its statistics",
  tags,
  request: {
    params: sessionParams,
    query: z.object({ include_stats: queryBoolean.default(true).openapi({ default: true }) }),
  },
  responses: { 200: jsonResponse(Session, "The experiment."), ...errors(404) },
});

/** Null leaves a field as it is: the official clients send it for everything that their callers did not name. */
const SessionUpdate = z
  .object({ ...changes, name: optional(z.string().min(1).max(1000)) })
  .openapi("TracerSessionUpdate");
export type SessionUpdate = z.output<typeof SessionUpdate>;

export const updateSession = createRoute({
  method: "patch",
  path: "/sessions/{session_id}",
  operationId: "update_session",
  summary: "Rename or describe an experiment",
  tags,
  request: { params: sessionParams, body: jsonBody(SessionUpdate) },
  responses: { 200: jsonResponse(Session, "The experiment as it is now."), ...errors(404, 409) },
});

export const deleteSession = createRoute({
  method: "delete",
  path: "/sessions/{session_id}",
  operationId: "delete_session",
  summary: "Remove an experiment with its runs and feedback",
  tags,
  request: { params: sessionParams },
  responses: { 200: jsonResponse(z.object({ message: z.string() }), "It is gone."), ...errors(404) },
});
