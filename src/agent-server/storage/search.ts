import { type RawBuilder, type SelectQueryBuilder, sql } from "kysely";
import type { MetadataFilter } from "../../platform/contract/caller.ts";

// biome-ignore lint/suspicious/noExplicitAny: the query's tables pass through unchanged
type AnyQuery = SelectQueryBuilder<any, any, any>;

export interface Paging {
  sort_by: string;
  sort_order: "asc" | "desc";
  limit: number;
  offset: number;
}

/** Selects rows whose JSON columns contain the given values, including nested values. */
export const matching =
  (parts: Record<string, object | undefined>) =>
  <Q>(query: Q): Q => {
    let filtered = query as AnyQuery;
    for (const [column, part] of Object.entries(parts)) {
      if (part === undefined) continue;
      filtered = filtered.where(sql<boolean>`json_contains(${sql.ref(column)}, ${JSON.stringify(part)})`);
    }
    return filtered as Q;
  };

/** Selects the records that a caller can access: without a filter, all records of the workspace. */
export const accessible =
  (filter: MetadataFilter | undefined) =>
  <Q>(query: Q): Q =>
    filter ? ((query as AnyQuery).where(conditionOf(filter, "metadata")) as Q) : query;

/** Selects the rows whose thread, identified by a column, the caller can access. */
export const onAccessibleThread =
  (filter: MetadataFilter | undefined, column: string) =>
  <Q>(query: Q): Q => {
    if (!filter) return query;
    const condition = conditionOf(filter, "accessible.metadata");
    const thread = sql<boolean>`exists (select 1 from threads accessible
      where accessible.thread_id = ${sql.ref(column)} and ${condition})`;
    return (query as AnyQuery).where(thread) as Q;
  };

function conditionOf(filter: MetadataFilter, column: string): RawBuilder<boolean> {
  if ("contains" in filter) return sql`json_contains(${sql.ref(column)}, ${JSON.stringify(filter.contains)})`;
  if ("assistant_ids" in filter)
    return filter.assistant_ids.length === 0 ? sql`1 = 0` : sql`assistant_id in (${sql.join(filter.assistant_ids)})`;
  const [parts, separator, none] =
    "all" in filter ? [filter.all, sql` and `, sql`1 = 1`] : [filter.any, sql` or `, sql`1 = 0`];
  const conditions = parts.map((part) => conditionOf(part, column));
  return conditions.length === 0 ? (none as RawBuilder<boolean>) : sql`(${sql.join(conditions, separator)})`;
}

export const escapeLike = (text: string): string => text.replace(/[!%_]/g, "!$&");

/** Compares without regard to case; on SQLite only for the letters A to Z. */
export const like = (column: string, pattern: string) =>
  sql<boolean>`lower(${sql.ref(column)}) like lower(${pattern}) escape '!'`;

/** Selects one page in a stable order: `tiebreaker` orders rows with equal sort keys. */
export const paged =
  ({ sort_by, sort_order, limit, offset }: Paging, tiebreaker: string) =>
  <Q>(query: Q): Q =>
    (query as AnyQuery).orderBy(sort_by, sort_order).orderBy(tiebreaker, sort_order).limit(limit).offset(offset) as Q;
