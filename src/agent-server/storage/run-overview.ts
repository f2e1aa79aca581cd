import { type SqlBool, sql } from "kysely";
import type { Tx } from "../../platform/database/database.ts";
import type { RunStatus } from "../contract/records.ts";
import type { RunRow } from "./schema.ts";

const SHOWN = [
  "seq",
  "run_id",
  "thread_id",
  "assistant_id",
  "graph_id",
  "status",
  "multitask_strategy",
  "temporary",
  "attempt",
  "cancel_action",
  "cancel_reason",
  "created_at",
  "start_at",
  "started_at",
  "ended_at",
] as const;

/** A run without its input and output, which may be large; of failed ones the output, which is their error. */
export type RunOverviewRow = Pick<RunRow, (typeof SHOWN)[number]> & { failure: string | null };

export interface RunOverviewFilter {
  tenant_id: string;
  statuses: readonly RunStatus[] | undefined;
  assistant_id: string | undefined;
  thread_id: string | undefined;
  run_id: string | undefined;
  /** In milliseconds since the epoch: from, inclusive, and until, exclusive. */
  created_from: number | undefined;
  created_until: number | undefined;
  /** The last run of the page before. */
  after: RunPlace | undefined;
  /** Runs of before this one are left out. */
  back_to: RunPlace | undefined;
  limit: number;
}

/** Where a run is in the order of acceptance. */
export type RunPlace = Pick<RunRow, "created_at" | "seq">;

/** The place of the run that is so many before those of the filter's times and page, whatever else it asks for. */
export const findPlaceBefore = (tx: Tx, filter: RunOverviewFilter, skip: number): Promise<RunPlace | undefined> =>
  tx.first(newestFirst(tx, filter).select(["created_at", "seq"]).limit(1).offset(skip));

function newestFirst(tx: Tx, filter: RunOverviewFilter) {
  const { created_from, created_until, after } = filter;
  // With a plus it is no column that an index has: of those that have not ended the index by the end is to be taken.
  const created_at = areActive(filter.statuses) ? sql<number>`+created_at` : sql.ref<number>("created_at");
  let query = tx.k.selectFrom("runs").where("tenant_id", "=", filter.tenant_id);
  if (created_from !== undefined) query = query.where(created_at, ">=", created_from);
  if (created_until !== undefined) query = query.where(created_at, "<", created_until);
  if (after) query = query.where(sql<SqlBool>`(${created_at}, seq) < (${after.created_at}, ${after.seq})`);
  return query.orderBy(created_at, "desc").orderBy("seq", "desc");
}

const ACTIVE: readonly RunStatus[] = ["pending", "running"];

/** Whether the runs of these statuses are those that have not ended, or some of them: an index finds them among any others. */
export const areActive = (statuses: readonly RunStatus[] | undefined): boolean =>
  statuses?.every((status) => ACTIVE.includes(status)) ?? false;

/** Runs of a tenant over all threads, the newest first. */
export function listRunsOfTenant(tx: Tx, filter: RunOverviewFilter): Promise<RunOverviewRow[]> {
  const { statuses, assistant_id, thread_id, run_id, back_to } = filter;
  let query = newestFirst(tx, filter)
    .select(SHOWN)
    .select(sql<string | null>`case when status in ('error', 'timeout') then output end`.as("failure"));
  if (back_to) query = query.where(sql<SqlBool>`(created_at, seq) >= (${back_to.created_at}, ${back_to.seq})`);
  if (areActive(statuses)) query = query.where("ended_at", "is", null);
  if (statuses) query = query.where("status", "in", [...statuses]);
  if (assistant_id) query = query.where("assistant_id", "=", assistant_id);
  if (thread_id) query = query.where("thread_id", "=", thread_id);
  if (run_id) query = query.where("run_id", "=", run_id);
  return tx.all(query.limit(filter.limit));
}

const MINUTE_MS = 60_000;

/** So many runs were accepted, begun and ended in these minutes; the minutes are counted since the epoch. */
export interface RunCount {
  accepted: number;
  started: number | null;
  ended: number | null;
  count: number;
}

/**
 * Runs of a tenant by the minutes of their lives: those that have not ended, or those that ended at that time or later, the last
 * ones first when there are more than `limit`.
 */
export async function countRunsByMinute(
  tx: Tx,
  { tenant_id, ended_from, limit }: { tenant_id: string; ended_from: number | null; limit: number },
): Promise<RunCount[]> {
  const runs = tx.k.selectFrom("runs").where("tenant_id", "=", tenant_id);
  const chosen = (
    ended_from === null
      ? runs.where("ended_at", "is", null)
      : runs.where("ended_at", ">=", ended_from).orderBy("ended_at", "desc")
  )
    .select([minuteOf("created_at").as("accepted"), minuteOf("started_at").as("started")])
    .select(minuteOf("ended_at").as("ended"))
    .limit(limit);
  const counts = await tx.all(
    tx.k
      .selectFrom(chosen.as("chosen"))
      .select(["accepted", "started", "ended", sql<number>`count(*)`.as("count")])
      .groupBy(["accepted", "started", "ended"]),
  );
  return counts.map((row) => ({ ...row, count: Number(row.count) }));
}

const minuteOf = <C extends "created_at" | "started_at" | "ended_at">(column: C) =>
  sql<RunRow[C]>`${sql.ref(column)} / ${sql.lit(MINUTE_MS)}`;
