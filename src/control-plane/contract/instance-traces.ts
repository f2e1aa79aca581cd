import { z } from "@hono/zod-openapi";
import { uuid } from "../../platform/contract/fields.ts";

/** Accepted times are from 1901 to 2250, as for ingested runs. */
const [MIN_TIME_MS, MAX_TIME_MS] = [Date.UTC(1901, 0), Date.UTC(2250, 0)];

/** An instance's report that an agent run has ended. The runs of its trace that are still open get the error `open_error`. */
export const traceEnd = z.object({
  run_id: uuid,
  name: z.string().max(1_000),
  session_name: z.string().min(1).max(1_000),
  started_at: z.int().min(MIN_TIME_MS).max(MAX_TIME_MS),
  error: z.string().optional(),
  open_error: z.string(),
});

export type ReportedTraceEnd = z.infer<typeof traceEnd>;

/** IDs of the agent runs whose traces are to be deleted. */
export const deletedRuns = z.array(uuid).max(1_000);
