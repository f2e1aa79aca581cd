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

const numbersIn = (text: string | null): Float64Array =>
  text === null || text === "" ? new Float64Array() : Float64Array.from(text.split(","), Number);
