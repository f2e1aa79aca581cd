import { type SqlBool, sql } from "kysely";
import type { MetadataFilter } from "../../platform/contract/caller.ts";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { RunOverviewQuery } from "../contract/app-runs.ts";
import type { RunStatus } from "../contract/records.ts";
import { PENDING, RUNNING } from "./runs.ts";
import type { RunRow } from "./schema.ts";
import { onAccessibleThread } from "./search.ts";

const COLUMNS = [
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

/** A run without its input and output, which may be large. `failure` is the output of a failed run: its error. */
export type RunOverviewRow = Pick<RunRow, (typeof COLUMNS)[number]> & { failure: string | null };

export interface RunOverviewFilter extends Omit<RunOverviewQuery, "cursor"> {
  tenant_id: string;
  access: MetadataFilter | undefined;
  /** The last run of the previous page. */
  after: RunPosition | undefined;
  /** Excludes runs that are older than the one at this position. */
  back_to?: RunPosition | undefined;
}

export type RunPosition = Pick<RunRow, "created_at" | "seq">;

/** Returns the position of the run `skip` places after the page's first. Ignores all filters but those on the creation time. */
export const findPositionBefore = (tx: Tx, filter: RunOverviewFilter, skip: number): Promise<RunPosition | undefined> =>
  tx.first(newestFirst(tx, filter).select(["created_at", "seq"]).limit(1).offset(skip));

function newestFirst(tx: Tx, filter: RunOverviewFilter) {
  const { created_from, created_until, after } = filter;
  // The plus excludes the index on created_at: for active runs the index on ended_at is faster.
  const created_at = areActive(filter.status) ? sql<number>`+created_at` : sql.ref<number>("created_at");
  let query = tx.k
    .selectFrom("runs")
    .where("tenant_id", "=", filter.tenant_id)
    .$call(onAccessibleThread(filter.access, "runs.thread_id"));
  if (created_from !== undefined) query = query.where(created_at, ">=", created_from);
  if (created_until !== undefined) query = query.where(created_at, "<", created_until);
  if (after) query = query.where(sql<SqlBool>`(${created_at}, seq) < (${after.created_at}, ${after.seq})`);
  return query.orderBy(created_at, "desc").orderBy("seq", "desc");
}

type EndRange = Pick<RunOverviewFilter, "tenant_id" | "ended_from" | "ended_until">;

function endedRuns(tx: Tx, { tenant_id, ended_from, ended_until }: EndRange) {
  let query = tx.k.selectFrom("runs").where("tenant_id", "=", tenant_id);
  if (ended_from !== undefined) query = query.where("ended_at", ">=", ended_from);
  if (ended_until !== undefined) query = query.where("ended_at", "<", ended_until);
  return query;
}

/** Returns the earliest creation of the runs that ended in a range of time; null if there are none. */
export async function firstCreation(tx: Tx, range: EndRange): Promise<number | null> {
  const row = await tx.first(endedRuns(tx, range).select(sql<number | null>`min(created_at)`.as("first")));
  return row?.first ?? null;
}

const ACTIVE: readonly RunStatus[] = ["pending", "running"];

/** Whether the filter selects only active runs. An index on `ended_at` finds these, however many runs have ended. */
export const areActive = (statuses: readonly RunStatus[] | undefined): boolean =>
  statuses?.every((status) => ACTIVE.includes(status)) ?? false;

/** Returns runs of a tenant, newest first. */
export function listRunsOfTenant(tx: Tx, filter: RunOverviewFilter): Promise<RunOverviewRow[]> {
  const { status, assistant_id, thread_id, run_id, ended_from, ended_until, back_to } = filter;
  let query = newestFirst(tx, filter)
    .select(COLUMNS)
    .select(sql<string | null>`case when status in ('error', 'timeout') then output end`.as("failure"));
  if (back_to) query = query.where(sql<SqlBool>`(created_at, seq) >= (${back_to.created_at}, ${back_to.seq})`);
  if (ended_from !== undefined || ended_until !== undefined)
    // The plus keeps the order of the list: its index and the one on ended_at find the runs, and only these are read.
    query = query.where(sql<number>`+seq`, "in", endedRuns(tx, filter).select("seq"));
  if (areActive(status)) query = query.where("ended_at", "is", null);
  if (status) query = query.where("status", "in", status);
  if (assistant_id) query = query.where("assistant_id", "=", assistant_id);
  if (thread_id) query = query.where("thread_id", "=", thread_id);
  if (run_id) query = query.where("run_id", "=", run_id);
  return tx.all(query.limit(filter.limit));
}

/** The input with the settings, and the output of a run that has not failed. Null if larger than the limit. */
export type RunPayloads = Pick<RunRow, "run_id" | "output"> & { kwargs: string | null };

/** Returns the inputs and outputs of runs of a tenant, in any order. The sizes are known without reading the values. */
export function listRunPayloads(
  tx: Tx,
  { tenant_id, access, run_ids, max_bytes }: RunPayloadsFilter,
): Promise<RunPayloads[]> {
  const upTo = (column: "kwargs" | "output") =>
    sql<string | null>`case when octet_length(${sql.ref(column)}) <= ${max_bytes} then ${sql.ref(column)} end`;
  return tx.all(
    tx.k
      .selectFrom("runs")
      .select("run_id")
      .select(upTo("kwargs").as("kwargs"))
      .select(sql<string | null>`case when status not in ('error', 'timeout') then ${upTo("output")} end`.as("output"))
      .where("tenant_id", "=", tenant_id)
      .where("run_id", "in", run_ids)
      .$call(onAccessibleThread(access, "runs.thread_id")),
  );
}

interface RunPayloadsFilter {
  tenant_id: string;
  access: MetadataFilter | undefined;
  run_ids: readonly string[];
  max_bytes: number;
}

/** Counts the runs with this status in all workspaces. */
export async function countActiveRuns(tx: Tx, status: "pending" | "running"): Promise<number> {
  // A partial index contains the runs with the literal status.
  const runs = tx.k.selectFrom("runs").where("status", "=", status === "pending" ? PENDING : RUNNING);
  const row = await tx.first(runs.select(sql<number>`count(*)`.as("count")));
  return Number(row?.count);
}

/** Milliseconds since the start time of the oldest pending run; 0 if no run is due. */
export async function oldestDueMs(tx: Tx): Promise<number> {
  const age = sql<number | null>`${nowMs} - min(start_at)`.as("age_ms");
  const row = await tx.first(tx.k.selectFrom("runs").select(age).where("status", "=", PENDING));
  return Math.max(0, Number(row?.age_ms ?? 0));
}

const MINUTE_MS = 60_000;

/** Number of runs that were accepted, started and ended in the same minutes. The minutes are counted from the epoch. */
export interface RunCount {
  accepted: number;
  started: number | null;
  ended: number | null;
  count: number;
}

/**
 * Counts runs of a tenant by the minutes of acceptance, start and end: active runs, or runs that ended at `ended_from` or later.
 * Counts at most `limit` runs: of ended runs, those that ended last.
 */
export async function countRunsByMinute(
  tx: Tx,
  {
    tenant_id,
    ended_from,
    limit,
    access,
  }: { tenant_id: string; ended_from: number | null; limit: number; access: MetadataFilter | undefined },
): Promise<RunCount[]> {
  const runs = tx.k
    .selectFrom("runs")
    .where("tenant_id", "=", tenant_id)
    .$call(onAccessibleThread(access, "runs.thread_id"));
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

/** The ended runs of an assistant in a bucket. Durations and queue times are those of runs that started, in ms, in any order. */
export interface EndedRuns {
  assistant_id: string;
  /** Number of the bucket, counted from the epoch. */
  bucket: number;
  runs: number;
  errors: number;
  /** End of the first of these runs. */
  first_end: number;
  durations: Float64Array;
  queue_times: Float64Array;
}

/** Groups the `limit` runs of a tenant that ended last within a time range. 50,000 runs take 75 to 240 ms. */
export async function groupEndedRuns(
  tx: Tx,
  { tenant_id, access, ended_from, ended_until, bucket_ms, limit }: EndedRunsFilter,
): Promise<EndedRuns[]> {
  const chosen = tx.k
    .selectFrom("runs")
    .select(["assistant_id", "status", "start_at", "started_at", "ended_at"])
    .select(sql<number>`ended_at / ${sql.lit(bucket_ms)}`.as("bucket"))
    .where("tenant_id", "=", tenant_id)
    .$call(onAccessibleThread(access, "runs.thread_id"))
    .where("ended_at", ">=", ended_from)
    .where("ended_at", "<", ended_until)
    .orderBy("ended_at", "desc")
    .limit(limit);
  const groups = await tx.all(
    tx.k
      .selectFrom(chosen.as("chosen"))
      .select(["assistant_id", "bucket", sql<number>`count(*)`.as("runs")])
      .select(sql<number>`sum(case when status in ('error', 'timeout') then 1 else 0 end)`.as("errors"))
      .select(sql<number>`min(ended_at)`.as("first_end"))
      .select(tx.dialect.joinNumbers(sql<number | null>`ended_at - started_at`).as("durations"))
      .select(tx.dialect.joinNumbers(sql<number | null>`started_at - start_at`).as("queue_times"))
      .groupBy(["assistant_id", "bucket"]),
  );
  return groups.map(({ runs, errors, durations, queue_times, ...group }) => ({
    ...group,
    runs: Number(runs),
    errors: Number(errors),
    durations: timesIn(durations),
    queue_times: timesIn(queue_times),
  }));
}

interface EndedRunsFilter {
  tenant_id: string;
  access: MetadataFilter | undefined;
  ended_from: number;
  ended_until: number;
  bucket_ms: number;
  limit: number;
}

/** A run that another process has started can have a start before its creation, by a millisecond. */
const timesIn = (text: string | null): Float64Array =>
  Float64Array.from(text?.split(",") ?? [], (ms) => Math.max(0, Number(ms)));
