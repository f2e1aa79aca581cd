import { type Expression, sql } from "kysely";
import type { Tx } from "../../../platform/database/database.ts";
import type { TreeUsage } from "./trace-schema.ts";

export type UsageSums = Omit<TreeUsage, "tree_first_token_us">;

/** Sums over runs, and their durations in microseconds, from which percentiles are computed. */
export interface OutcomeSums {
  run_count: number;
  /** The number of runs with an end or an error. */
  ended: number;
  failed: number;
  last_run_start_us: number | null;
  latencies_us: Float64Array;
  /** The times to the first token, of ended runs that have one. */
  first_tokens_us: Float64Array;
  /** Each sum is null if no run has a value. */
  usage: UsageSums;
  /** The total tokens of each run that has any, if requested. */
  tokens: Float64Array;
}

export const USAGE_COLUMNS = [
  "tree_total_tokens",
  "tree_prompt_tokens",
  "tree_completion_tokens",
  "tree_total_cost",
  "tree_prompt_cost",
  "tree_completion_cost",
] as const;

/**
 * Sums runs in the database. The query returns durations as comma-separated strings: 100,000 runs take 90 ms, and 500 ms as rows.
 *
 * @param outcomes a query with the times, the error and the tree usage of runs
 */
export async function sumOutcomes(
  tx: Tx,
  outcomes: Expression<unknown>,
  { with_tokens = false } = {},
): Promise<OutcomeSums> {
  const isEnded = sql`(r.end_us is not null or r.error is not null)`;
  const sums = USAGE_COLUMNS.map((column) => sql`sum(${sql.ref(`r.${column}`)}) as ${sql.ref(column)}`);
  const first_token = sql<number | null>`case when ${isEnded} then r.tree_first_token_us - r.start_us end`;
  const tokens = with_tokens ? tx.dialect.joinNumbers(sql<number | null>`r.tree_total_tokens`) : sql`null`;
  const row = (await tx.first(
    sql<Record<string, number | string | null>>`
      select count(*) as run_count, sum(case when ${isEnded} then 1 else 0 end) as ended,
        count(r.error) as failed, max(r.start_us) as last_run_start_us,
        ${tx.dialect.joinNumbers(sql<number | null>`r.end_us - r.start_us`)} as latencies,
        ${tx.dialect.joinNumbers(first_token)} as first_tokens, ${tokens} as tokens,
        ${sql.join(sums)}
      from ${outcomes} r`.compile(tx.k),
  )) as Record<string, number | string | null>;
  // Postgres returns sums of integers as strings.
  const number = (value: number | string | null | undefined) =>
    value === null || value === undefined ? null : Number(value);
  return {
    run_count: number(row.run_count) ?? 0,
    ended: number(row.ended) ?? 0,
    failed: number(row.failed) ?? 0,
    last_run_start_us: number(row.last_run_start_us),
    latencies_us: numbersIn(row.latencies as string | null),
    first_tokens_us: numbersIn(row.first_tokens as string | null),
    tokens: numbersIn(row.tokens as string | null),
    usage: Object.fromEntries(USAGE_COLUMNS.map((column) => [column, number(row[column])])) as unknown as UsageSums,
  };
}

/** The tokens and costs of the traces of an assistant that ended in a bucket. */
export interface BucketUsage extends Pick<UsageSums, (typeof BUCKET_COLUMNS)[number]> {
  assistant_id: string;
  /** Number of the bucket, counted from the epoch. */
  bucket: number;
}

const BUCKET_COLUMNS = ["tree_total_tokens", "tree_completion_tokens", "tree_total_cost"] as const;

export interface BucketUsageFilter {
  tenant_id: string;
  assistant_id: string | undefined;
  from_us: number;
  until_us: number;
  bucket_us: number;
}

/** Returns the start of the trace `skip` places before the one that started last in a time range. Null if there are fewer traces. */
export async function findStartBefore(tx: Tx, filter: BucketUsageFilter, skip: number): Promise<number | null> {
  const starts = rootsIn(tx, filter).select("r.start_us").orderBy("r.start_us", "desc");
  return (await tx.first(starts.limit(1).offset(skip)))?.start_us ?? null;
}

/** Traces that ended in the range started at most this long before it. The index of roots contains their starts only. */
const MAX_TRACE_US = 86_400_000_000;

/** The roots of traces that can have ended in the range. The condition on the experiment selects the index of roots by start. */
const rootsIn = (tx: Tx, { tenant_id, from_us, until_us }: BucketUsageFilter) =>
  tx.k
    .selectFrom("trace_runs as r")
    .where(
      ({ selectFrom }) =>
        sql<boolean>`r.experiment_no in ${selectFrom("experiments").select("experiment_no").where("tenant_id", "=", tenant_id)}`,
    )
    .where(sql<boolean>`r.is_root = 1`)
    .where("r.start_us", ">=", from_us - MAX_TRACE_US)
    .where("r.start_us", "<", until_us);

/**
 * Sums the usage of the traces of this server's assistants. Reads their metadata: 50,000 traces take 0.5 s, of 150,000 in the range.
 *
 * @param after_us excludes traces that started earlier
 */
export async function sumUsageByBucket(
  tx: Tx,
  filter: BucketUsageFilter,
  after_us: number | null,
): Promise<BucketUsage[]> {
  const { assistant_id, from_us, until_us, bucket_us } = filter;
  const field = (name: string) => tx.dialect.jsonText(sql<string | null>`r.metadata`, name);
  let ended = rootsIn(tx, filter)
    .select(BUCKET_COLUMNS.map((column) => `r.${column}` as const))
    .select(field("assistant_id").as("assistant_id"))
    .select(sql<number>`r.end_us / ${sql.lit(bucket_us)}`.as("bucket"))
    .where("r.end_us", ">=", from_us)
    .where("r.end_us", "<", until_us)
    // The assistants of deployments can have the IDs of those of this server.
    .where(sql<boolean>`${field("deployment_id")} is null`);
  if (after_us !== null) ended = ended.where("r.start_us", ">=", after_us);
  const groups = await tx.all(
    tx.k
      .selectFrom(ended.as("e"))
      .select(["assistant_id", "bucket"])
      .select(({ fn }) => BUCKET_COLUMNS.map((column) => fn.sum<number | null>(column).as(column)))
      .where("assistant_id", assistant_id === undefined ? "is not" : "=", assistant_id ?? null)
      .groupBy(["assistant_id", "bucket"]),
  );
  // Postgres returns sums of integers as strings.
  const number = (value: number | null) => (value === null ? null : Number(value));
  return groups.map((group) => ({
    assistant_id: group.assistant_id as string,
    bucket: Number(group.bucket),
    tree_total_tokens: number(group.tree_total_tokens),
    tree_completion_tokens: number(group.tree_completion_tokens),
    tree_total_cost: number(group.tree_total_cost),
  }));
}

const numbersIn = (text: string | null): Float64Array =>
  text === null || text === "" ? new Float64Array() : Float64Array.from(text.split(","), Number);
