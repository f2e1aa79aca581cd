import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonResponse, optional, withDefault } from "../../../platform/contract/fields.ts";
import { time, timeText, uuidOrHex } from "../fields.ts";
import { errors } from "../responses.ts";
import { FeedbackStats } from "../sessions.ts";

/** The traces of a project whose root runs have the same thread ID. Times are those of the root runs; latencies are in seconds. */
export const Thread = z
  .object({
    thread_id: z.string(),
    filter: z.string().describe("The filter expression that selects the runs of the thread."),
    count: z.int().describe("The number of traces."),
    total_tokens: z.int(),
    total_cost: z.number().nullable(),
    latency_p50: z.number().nullable(),
    latency_p99: z.number().nullable(),
    min_start_time: timeText,
    max_start_time: timeText,
    start_time: timeText.describe("The start time of the last trace."),
    trace_id: z.string().describe("The last trace."),
    first_trace_id: z.string(),
    last_trace_id: z.string(),
    first_inputs: z.string().describe("The beginning of the inputs of the first trace."),
    last_outputs: z.string().describe("The beginning of the outputs of the last trace."),
    last_error: z.string().nullable(),
    num_errored_turns: z.int(),
    feedback_stats: FeedbackStats,
  })
  .openapi("Thread");
export type Thread = z.output<typeof Thread>;

const GroupQuery = z
  .object({
    session_id: uuidOrHex,
    group_by: z.literal("conversation"),
    filter: optional(z.string()).describe("A filter expression for root runs."),
    start_time: optional(time),
    end_time: optional(time),
    limit: withDefault(z.int().min(1), 10).transform((limit) => Math.min(limit, 100)),
    offset: withDefault(z.int().min(0).max(1_000_000_000), 0),
  })
  .openapi("RunGroupRequest");
export type GroupQuery = z.output<typeof GroupQuery>;

export const threadRoutes = {
  groupRuns: createRoute({
    method: "post",
    path: "/runs/group",
    operationId: "group_runs",
    summary: "List the threads of a project. The thread with the most recently started trace comes first",
    request: { body: jsonBody(GroupQuery) },
    responses: {
      200: jsonResponse(z.object({ groups: z.array(Thread), total: z.int() }), "A page of threads."),
      ...errors(400, 404),
    },
  }),
};
