import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonResponse, nullable, optional, withDefault } from "../../../platform/contract/fields.ts";
import { nullableTime, time, timeText, uuidOrHex, uuids } from "../fields.ts";
import { errors } from "../responses.ts";
import { FeedbackStats } from "../sessions.ts";

const tags = ["Web app"];

/** A run without its payloads. Tokens, costs (USD) and first token time include all descendants. */
const runFields = {
  id: z.string(),
  parent_run_id: nullable(z.string()).describe("ID of the parent run, which may not have been received yet."),
  dotted_order: z.string().describe("Sorting runs by this string puts them in tree order."),
  name: z.string(),
  run_type: z.string().openapi({ example: "llm" }),
  status: z.enum(["pending", "success", "error"]),
  start_time: timeText,
  end_time: nullableTime,
  first_token_time: nullableTime,
  error: nullable(z.string()).describe("The first line of the error."),
  total_tokens: z.int(),
  total_cost: nullable(z.number()),
  tags: z.array(z.string()),
};

const TraceRun = z
  .object({
    ...runFields,
    langgraph_node: z.string().optional().describe("The value of the metadata key `langgraph_node`."),
  })
  .openapi("TraceRun");
export type TraceRun = z.output<typeof TraceRun>;

const Trace = z
  .object({
    trace_id: z.string(),
    session_id: z
      .string()
      .describe(
        "Session ID of the root run. If the root run has not been received, it is the session ID of the first run.",
      ),
    status: runFields.status.describe("The status of the root run; `pending` if the root run has not been received."),
    version: z
      .string()
      .describe(
        "Opaque value that changes whenever the trace changes. It can also change without a change to the trace.",
      ),
    next: nullable(z.string()).describe("The `after` parameter for the next page; null on the last page."),
    runs: z.array(TraceRun),
  })
  .openapi("Trace");
export type Trace = z.output<typeof Trace>;

const TracesQuery = z
  .object({
    session_id: optional(uuidOrHex).describe("ID of a project. Default: all projects."),
    id: optional(uuids),
    is_root: optional(z.boolean()),
    filter: optional(z.string()).describe("A filter expression, as in `POST /runs/query`."),
    query: optional(z.string()).describe("Words to search for in the name, error, metadata, inputs and outputs."),
    order_by: withDefault(z.enum(["start_time", "latency", "total_tokens", "total_cost"]), "start_time"),
    descending: withDefault(z.boolean(), true),
    cursor: optional(z.string()),
    limit: withDefault(z.int().min(1).max(100), 100),
  })
  .openapi("TracesQuery");
export type TracesQuery = z.output<typeof TracesQuery>;

const ListedRun = z
  .object({
    ...runFields,
    trace_id: z.string(),
    session_id: z.string(),
    thread_id: nullable(z.string()),
    inputs_preview: nullable(z.string()),
    outputs_preview: nullable(z.string()),
    feedback_stats: FeedbackStats,
  })
  .openapi("ListedTraceRun");
export type ListedRun = z.output<typeof ListedRun>;

const TracesPage = z
  .object({
    runs: z.array(ListedRun),
    next: nullable(z.string()).describe("The `cursor` parameter for the next page; null on the last page."),
  })
  .openapi("TracesPage");
export type TracesPage = z.output<typeof TracesPage>;

const MAX_BUCKETS = 100;

const UsageQuery = z
  .object({
    from: time,
    until: time,
    bucket_ms: z.int().min(1000).describe("Length of a bucket in milliseconds."),
    assistant_id: optional(uuidOrHex),
  })
  .refine(({ from, until, bucket_ms }) => until > from && until - from <= MAX_BUCKETS * bucket_ms * 1000, {
    path: ["until"],
    error: `must be after \`from\`, and the time between them must not exceed ${MAX_BUCKETS} times \`bucket_ms\``,
  })
  .openapi("UsageQuery");
export type UsageQuery = z.output<typeof UsageQuery>;

const usageFields = {
  total_tokens: nullable(z.int()),
  completion_tokens: nullable(z.int()),
  total_cost: nullable(z.number()).describe("In USD."),
};

const UsageOverTime = z
  .object({
    total: z.object(usageFields),
    buckets: z
      .array(z.object({ at: timeText.describe("Start of the bucket."), ...usageFields }))
      .describe("Oldest first. Buckets in which no trace ended are omitted."),
    assistants: z
      .array(z.object({ assistant_id: z.string(), ...usageFields }))
      .describe("The 100 assistants with the most tokens."),
    incomplete_until: nullableTime.describe(
      "Null if all traces were counted. Otherwise, only the 50,000 most recently started traces were counted, and the value is the earliest of their start times.",
    ),
  })
  .openapi("UsageOverTime", {
    description:
      "Tokens and costs of the traces of this server's assistants, grouped into buckets by the end time of the root run. Traces that started more than a day before `from` are not counted. A value is null if no counted trace reports it.",
  });
export type UsageOverTime = z.output<typeof UsageOverTime>;

/** The routes of the trace pages in the web app. */
export const tracePageRoutes = {
  readTrace: createRoute({
    method: "get",
    path: "/app/api/traces/{trace_id}",
    operationId: "readTrace",
    summary: "Get the runs of a trace without their payloads, in tree order",
    tags,
    request: {
      params: z.object({ trace_id: uuidOrHex }),
      query: z.object({
        after: z.string().optional().openapi({ description: "The `next` value of the previous page." }),
      }),
    },
    responses: { 200: jsonResponse(Trace, "A page of at most 5,000 runs."), ...errors(404) },
  }),

  listTraces: createRoute({
    method: "post",
    path: "/app/api/traces/query",
    operationId: "listTraces",
    summary: "List the runs of traces without their payloads",
    tags,
    request: { body: jsonBody(TracesQuery) },
    responses: { 200: jsonResponse(TracesPage, "A page of runs."), ...errors(400, 404) },
  }),

  readUsage: createRoute({
    method: "post",
    path: "/app/api/traces/usage",
    operationId: "readUsage",
    summary: "Get the tokens and costs of assistants over time",
    tags,
    request: { body: jsonBody(UsageQuery) },
    responses: { 200: jsonResponse(UsageOverTime, "The tokens and costs, by bucket and by assistant.") },
  }),
} as const;
