import { createRoute, z } from "@hono/zod-openapi";
import { jsonResponse, nullable, queryInt, repeated, timestamp, uuid } from "../../platform/contract/fields.ts";
import { CancelAction, MultitaskStrategy, RunStatus } from "./records.ts";

const tags = ["Web app"];

/** Runs of a page when nothing else is asked for, and at most. */
const USUAL = 100;
const MOST = 500;

const moment = timestamp.transform((text) => Date.parse(text));

const RunOverviewQuery = z.object({
  status: repeated(RunStatus).optional().openapi({ description: "Any of these; all without it." }),
  assistant_id: uuid.optional(),
  thread_id: uuid.optional(),
  run_id: uuid.optional(),
  created_from: moment.optional().openapi({ description: "Accepted at that time or later." }),
  created_until: moment.optional().openapi({ description: "Accepted before that time." }),
  limit: queryInt(1, MOST).default(USUAL).openapi({ default: USUAL }),
  cursor: z
    .string()
    .regex(/^\d{1,15}\.\d{1,15}$/, "must be the `next` of an answer")
    .optional()
    .openapi({ description: "The `next` of the page before." }),
});
export type RunOverviewQuery = z.output<typeof RunOverviewQuery>;

/** A run without what it was given and what it answered. */
export const RunOverviewItem = z
  .object({
    run_id: uuid,
    thread_id: uuid,
    assistant_id: uuid,
    graph_id: z.string(),
    status: RunStatus,
    multitask_strategy: MultitaskStrategy,
    is_stateless: z.boolean().openapi({ description: "Its thread is hidden, and goes when the run ends." }),
    attempt: z.int().openapi({ description: "How often it was begun." }),
    stopping: nullable(CancelAction).openapi({ description: "Set while it is told to stop and has not yet." }),
    cancel_reason: nullable(z.string()),
    error: nullable(z.object({ error: z.string(), message: z.string() })),
    created_at: timestamp,
    start_at: timestamp.openapi({ description: "It does not start before." }),
    started_at: nullable(timestamp),
    ended_at: nullable(timestamp),
  })
  .openapi("RunOverviewItem");
export type RunOverviewItem = z.output<typeof RunOverviewItem>;

const RunOverviewPage = z
  .object({
    runs: z.array(RunOverviewItem),
    next: nullable(z.string()).openapi({
      description: "For `cursor`; null on the last page. A page before it may have fewer runs than asked for, or none.",
    }),
  })
  .openapi("RunOverviewPage");
export type RunOverviewPage = z.output<typeof RunOverviewPage>;

const RunMinute = z
  .object({
    at: timestamp.openapi({ description: "When the minute begins." }),
    accepted: z.int(),
    started: z.int().openapi({ description: "Begun for the first time." }),
    ended: z.int(),
    waiting: z.int().openapi({ description: "Accepted and not begun, at the end of the minute." }),
    running: z.int().openapi({ description: "Begun and not ended, at the end of the minute." }),
  })
  .openapi("RunMinute");
export type RunMinute = z.output<typeof RunMinute>;

const RunThroughput = z
  .object({
    minutes: z.array(RunMinute).openapi({
      description:
        "The last 60, the oldest first; the last one is not over yet. Fewer where more runs have ended than are counted. Runs " +
        "that were rolled back are in none.",
    }),
  })
  .openapi("RunThroughput");
export type RunThroughput = z.output<typeof RunThroughput>;

const listAllRuns = createRoute({
  method: "get",
  path: "/app/api/runs",
  operationId: "listAllRuns",
  summary: "The workspace's runs over all threads, the newest first",
  tags,
  request: { query: RunOverviewQuery },
  responses: { 200: jsonResponse(RunOverviewPage, "A page.") },
});

const getRunThroughput = createRoute({
  method: "get",
  path: "/app/api/runs/stats",
  operationId: "getRunThroughput",
  summary: "How many runs wait, run, start and end, by the minute",
  tags,
  responses: { 200: jsonResponse(RunThroughput, "The last hour.") },
});

export const appRunRoutes = {
  listAllRuns, // GET /app/api/runs
  getRunThroughput, // GET /app/api/runs/stats
} as const;
