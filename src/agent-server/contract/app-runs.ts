import { z } from "@hono/zod-openapi";
import { jsonResponse, nullable, queryInt, repeated, timestamp, uuid } from "../../platform/contract/fields.ts";
import { routeGroup } from "../../platform/contract/operation.ts";
import { CancelAction, MultitaskStrategy, RunStatus } from "./records.ts";

const epochMs = timestamp.transform((text) => Date.parse(text));

const RunOverviewQuery = z.object({
  status: repeated(RunStatus)
    .optional()
    .openapi({ description: "Returns only runs with one of these statuses. Default: all statuses." }),
  assistant_id: uuid.optional(),
  thread_id: uuid.optional(),
  run_id: uuid.optional(),
  created_from: epochMs
    .optional()
    .openapi({ description: "Returns only runs that were created at this time or later." }),
  created_until: epochMs.optional().openapi({ description: "Returns only runs that were created before this time." }),
  ended_from: epochMs.optional().openapi({ description: "Returns only runs that ended at this time or later." }),
  ended_until: epochMs.optional().openapi({ description: "Returns only runs that ended before this time." }),
  limit: queryInt(1, 500).default(100).openapi({ default: 100 }),
  cursor: z
    .string()
    .regex(/^\d{1,15}\.\d{1,15}$/, "must be the `next` value of a previous response")
    .optional()
    .openapi({ description: "The `next` value of the previous page." }),
});
export type RunOverviewQuery = z.output<typeof RunOverviewQuery>;

/** A summary of a run, without its input, output and metadata. */
export const RunOverviewItem = z
  .object({
    run_id: uuid,
    thread_id: uuid,
    assistant_id: uuid,
    graph_id: z.string(),
    status: RunStatus,
    multitask_strategy: MultitaskStrategy,
    is_stateless: z.boolean().openapi({
      description: "Whether the run is stateless. The hidden thread of a stateless run is deleted when the run ends.",
    }),
    attempt: z.int().openapi({ description: "Number of attempts." }),
    stopping: nullable(CancelAction).openapi({
      description: "Requested cancel action if the run is being cancelled; otherwise null.",
    }),
    cancel_reason: nullable(z.string()),
    error: nullable(z.object({ error: z.string(), message: z.string() })),
    created_at: timestamp,
    start_at: timestamp.openapi({ description: "Earliest time at which the run can start." }),
    started_at: nullable(timestamp),
    ended_at: nullable(timestamp),
  })
  .openapi("RunOverviewItem");
export type RunOverviewItem = z.output<typeof RunOverviewItem>;

const RunOverviewPage = z
  .object({
    runs: z.array(RunOverviewItem),
    next: nullable(z.string()).openapi({
      description:
        "The `cursor` parameter for the next page; null on the last page. A page can contain fewer than `limit` runs, or none, even if it is not the last page.",
    }),
  })
  .openapi("RunOverviewPage");
export type RunOverviewPage = z.output<typeof RunOverviewPage>;

const RunPreviewsQuery = z.object({ run_id: repeated(uuid).pipe(z.array(uuid).max(50)) });

const RunPreview = z
  .object({
    run_id: uuid,
    input: nullable(z.string()).openapi({
      description: "The last user message, a text field such as `question`, or the beginning of the input as JSON.",
    }),
    output: nullable(z.string()).openapi({
      description:
        "The last model message, a text field such as `answer`, or the beginning of the final state as JSON. Null for an active or failed run.",
    }),
  })
  .openapi("RunPreview");
export type RunPreview = z.output<typeof RunPreview>;

const RunPreviews = z.object({ previews: z.array(RunPreview) }).openapi("RunPreviews", {
  description: "Runs that do not exist are omitted. Inputs and outputs larger than 200 KB have no preview.",
});
export type RunPreviews = z.output<typeof RunPreviews>;

const RunMinute = z
  .object({
    at: timestamp.openapi({ description: "Start of the minute." }),
    accepted: z.int(),
    started: z.int().openapi({ description: "Number of runs whose first attempt started in this minute." }),
    ended: z.int(),
    waiting: z.int().openapi({ description: "Number of queued runs at the end of the minute." }),
    running: z.int().openapi({ description: "Number of running runs at the end of the minute." }),
  })
  .openapi("RunMinute");
export type RunMinute = z.output<typeof RunMinute>;

const RunThroughput = z
  .object({
    minutes: z.array(RunMinute).openapi({
      description:
        "The last 60 minutes, oldest first; the last one is the current minute. The earliest minutes are omitted if more than 50,000 runs ended in the last hour. " +
        "Rolled-back runs are not counted, nor are active runs in excess of 50,000.",
    }),
  })
  .openapi("RunThroughput");
export type RunThroughput = z.output<typeof RunThroughput>;

const MonitoringQuery = z.object({
  range: z.enum(["1h", "6h", "24h", "7d", "30d"]).default("24h").openapi({ default: "24h" }),
  assistant_id: uuid.optional(),
});
export type MonitoringQuery = z.output<typeof MonitoringQuery>;

const runNumbers = {
  runs: z.int().openapi({ description: "Number of ended runs." }),
  errors: z.int().openapi({ description: "Number of ended runs with status `error` or `timeout`." }),
  duration_p50_ms: nullable(z.number()),
  duration_p99_ms: nullable(z.number()),
  queue_p50_ms: nullable(z.number()),
  queue_p99_ms: nullable(z.number()),
};

const RunBucket = z
  .object({ at: timestamp.openapi({ description: "Start of the bucket." }), ...runNumbers })
  .openapi("RunBucket");

const runSeries = {
  ...runNumbers,
  buckets: z.array(RunBucket).openapi({ description: "Oldest first. Buckets in which no run ended are omitted." }),
};

const AssistantRuns = z.object({ assistant_id: uuid, ...runSeries }).openapi("AssistantRuns");
export type AssistantRuns = z.output<typeof AssistantRuns>;

const RunMonitoring = z
  .object({
    from: timestamp.openapi({ description: "Start of the first bucket." }),
    until: timestamp.openapi({ description: "End of the last bucket, which contains the current time." }),
    bucket_ms: z.int().openapi({ description: "Length of a bucket in milliseconds." }),
    incomplete_until: nullable(timestamp).openapi({
      description:
        "Null if all runs that ended in the range were counted. Otherwise, only the 50,000 runs that ended most recently (across all assistants) were counted, and the value is the earliest of their end times.",
    }),
    total: z.object(runSeries),
    assistants: z
      .array(AssistantRuns)
      .openapi({ description: "The 100 assistants with the largest number of ended runs." }),
  })
  .openapi("RunMonitoring", {
    description:
      "Runs are counted in the bucket in which they ended. The duration of a run is the time from its first start to its end, in milliseconds. Its queue time is the time from its creation, or from its scheduled start if later, to its first start. Percentiles use linear interpolation, and are null if none of the counted runs has started. Rolled-back runs are not counted.",
  });
export type RunMonitoring = z.output<typeof RunMonitoring>;

export const appRunRoutes = routeGroup("Web app", {
  listAllRuns: {
    method: "get",
    path: "/app/api/runs",
    summary: "List the workspace's runs",
    request: { query: RunOverviewQuery },
    responses: { 200: jsonResponse(RunOverviewPage, "A page of runs.") },
  },

  getRunPreviews: {
    method: "get",
    path: "/app/api/runs/previews",
    summary: "Get previews of the inputs and outputs of runs",
    request: { query: RunPreviewsQuery },
    responses: { 200: jsonResponse(RunPreviews, "Previews of the inputs and outputs of the runs.") },
  },

  getRunThroughput: {
    method: "get",
    path: "/app/api/runs/stats",
    summary: "Count runs by minute",
    responses: { 200: jsonResponse(RunThroughput, "Run counts for each minute of the last hour.") },
  },

  getRunMonitoring: {
    method: "get",
    path: "/app/api/runs/monitoring",
    summary: "Get counts, durations and queue times of ended runs over time",
    request: { query: MonitoringQuery },
    responses: {
      200: jsonResponse(
        RunMonitoring,
        "Statistics for all runs and for each assistant. The range is divided into 60 to 90 buckets.",
      ),
    },
  },
});
