import { z } from "@hono/zod-openapi";
import { optional, withDefault } from "../../../platform/contract/fields.ts";
import { nullableTime, paging, refused, texts, time, unsupportedFilters, usage, uuidOrHex } from "../fields.ts";
import { FeedbackStats } from "../sessions.ts";

import { RunV2, selectOf } from "./runs.ts";

const threadFilters = {
  filter: optional(z.string()).describe("A filter expression for root runs."),
  trace_filter: optional(z.string()).describe(
    "A second filter expression for root runs. If `filter` is also set, both apply.",
  ),
  tree_filter: optional(z.string()).describe("A filter expression that at least one run of the trace must match."),
};

export const ThreadQueryV2 = z
  .object({
    project_id: uuidOrHex,
    ...threadFilters,
    thread_filter: refused("is not supported: to filter root runs, use `filter` or `trace_filter`"),
    ...unsupportedFilters,
    min_start_time: optional(time).describe("Default: no lower bound. (LangSmith's default is one day ago.)"),
    max_start_time: optional(time),
    cursor: optional(z.string()),
    page_size: withDefault(z.int().min(1).max(100), 20),
  })
  .openapi("ThreadQueryV2");
export type ThreadQueryV2 = z.output<typeof ThreadQueryV2>;

const { thread_id, trace_id, start_time, end_time, name, inputs, outputs, error, error_preview } = RunV2.shape;
const { inputs_preview, outputs_preview, first_token_time } = RunV2.shape;

/** The root run of a trace. */
export const ThreadTrace = z
  .object({
    ...{ thread_id, trace_id, name, start_time, end_time, first_token_time, inputs, outputs, inputs_preview },
    ...{ outputs_preview, error, error_preview, ...usage.tokens, ...usage.details },
    latency: z.number().nullable(),
  })
  .openapi("ThreadTrace");
export type ThreadTrace = z.output<typeof ThreadTrace>;

export const ThreadTracesQuery = z.object({
  project_id: uuidOrHex,
  ...threadFilters,
  selects: texts.pipe(z.array(selectOf(ThreadTrace.shape))).optional(),
  cursor: z.string().optional(),
  page_size: paging.limit,
});
export type ThreadTracesQuery = z.output<typeof ThreadTracesQuery>;

const rawDetails = z.object({ raw: z.record(z.string(), z.number()) });

export const ThreadStats = z
  .object({
    turns: z.int(),
    first_start_time: nullableTime,
    last_start_time: nullableTime,
    last_end_time: nullableTime,
    latency_p50_seconds: z.number().nullable(),
    latency_p99_seconds: z.number().nullable(),
    ...usage.tokens,
    prompt_token_details: rawDetails,
    completion_token_details: rawDetails,
    prompt_cost_details: rawDetails,
    completion_cost_details: rawDetails,
    feedback_stats: FeedbackStats,
  })
  .openapi("ThreadStats");
export type ThreadStats = z.output<typeof ThreadStats>;

export const ThreadStatsQuery = z.object({
  session_id: uuidOrHex,
  selects: texts.pipe(
    z.array(z.enum(Object.keys(ThreadStats.shape).map((n) => n.toUpperCase().replace("_SECONDS", "")) as [string])),
  ),
  filter: z.string().optional(),
});
export type ThreadStatsQuery = z.output<typeof ThreadStatsQuery>;

export const threadParams = z.object({ thread_id: z.string() });
