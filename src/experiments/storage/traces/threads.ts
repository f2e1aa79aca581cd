import { sql } from "kysely";
import type { Tx } from "../../../platform/database/database.ts";
import { byIds } from "../../../platform/database/insert-many.ts";
import type { FeedbackStatsInput } from "../feedback.ts";
import type { RunCursor } from "../runs.ts";
import type { TraceRunRow, TreeUsage } from "./trace-schema.ts";
import { matchingRuns, type TraceSearch } from "./trace-search.ts";

export interface ThreadPage {
  /** The last thread of the previous page: the start of its newest root, and its id. */
  after?: RunCursor | undefined;
  offset?: number;
  limit: number;
}

/** The threads of the matching roots, the one with the newest root first. */
export function listThreads(
  tx: Tx,
  tenant_id: string,
  search: TraceSearch,
  { after, offset = 0, limit }: ThreadPage,
): Promise<{ thread_id: string; last_us: number }[]> {
  let query = matchingRuns(tx, tenant_id, search)
    .select(["r.thread_id", ({ fn }) => fn.max("r.start_us").as("last_us")])
    .where("r.thread_id", "is not", null)
    .groupBy("r.thread_id");
  if (after) query = query.having(sql<boolean>`(max(r.start_us), r.thread_id) < (${after.start_us}, ${after.run_id})`);
  return tx.all(query.orderBy("last_us", "desc").orderBy("r.thread_id", "desc").limit(limit).offset(offset)) as Promise<
    { thread_id: string; last_us: number }[]
  >;
}

export async function countThreads(tx: Tx, tenant_id: string, search: TraceSearch): Promise<number> {
  const query = matchingRuns(tx, tenant_id, search).where("r.thread_id", "is not", null);
  const row = await tx.first(query.select(({ fn }) => fn.count<number>("r.thread_id").distinct().as("count")));
  return Number(row?.count ?? 0);
}

export type ThreadRoot = Pick<TraceRunRow, "thread_id" | "run_id" | "start_us" | "end_us" | "error"> & TreeUsage;

/** The matching roots of threads, oldest first. */
export async function rootsOfThreads(
  tx: Tx,
  tenant_id: string,
  search: TraceSearch,
  thread_ids: string[],
): Promise<ThreadRoot[]> {
  // Sorted below and not in SQL, because SQLite would read all roots in that order.
  const roots = (await byIds(thread_ids, (batch) =>
    tx.all(
      matchingRuns(tx, tenant_id, search)
        .select(["r.thread_id", "r.run_id", "r.start_us", "r.end_us", "r.error", "r.tree_prompt_tokens"])
        .select(["r.tree_completion_tokens", "r.tree_total_tokens", "r.tree_prompt_cost", "r.tree_completion_cost"])
        .select(["r.tree_total_cost", "r.tree_first_token_us"])
        .where("r.thread_id", "in", batch),
    ),
  )) as ThreadRoot[];
  return roots.sort((a, b) => a.start_us - b.start_us || (a.run_id < b.run_id ? -1 : 1));
}

/** The feedback on any run of these traces, oldest first. */
export const feedbackOfTraces = (
  tx: Tx,
  tenant_id: string,
  trace_ids: string[],
): Promise<(FeedbackStatsInput & { trace_id: string })[]> =>
  byIds(trace_ids, (batch) =>
    tx.all(
      tx.k
        .selectFrom("trace_runs as t")
        .innerJoin("feedback as f", (join) =>
          join.onRef("f.tenant_id", "=", "t.tenant_id").onRef("f.run_id", "=", "t.run_id"),
        )
        .select(["t.trace_id", "f.run_id", "f.example_index", "f.repetition", "f.key", "f.score", "f.value"])
        .select(["f.comment", "f.source", "f.is_error"])
        .where("t.tenant_id", "=", tenant_id)
        .where("t.trace_id", "in", batch)
        .orderBy("f.created_us")
        .orderBy("f.feedback_id"),
    ),
  );

/** The runs of these traces with details of their tokens or costs, parents before children. */
export const usageDetailsOf = (
  tx: Tx,
  tenant_id: string,
  trace_ids: string[],
): Promise<Pick<TraceRunRow, "run_id" | "dotted_order" | "run_type" | "usage_details">[]> =>
  byIds(trace_ids, (batch) =>
    tx.all(
      tx.k
        .selectFrom("trace_runs")
        .select(["run_id", "dotted_order", "run_type", "usage_details"])
        .where("tenant_id", "=", tenant_id)
        .where("trace_id", "in", batch)
        .where("usage_details", "is not", null)
        .orderBy("dotted_order"),
    ),
  );
