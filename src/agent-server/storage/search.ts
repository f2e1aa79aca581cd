import { type SelectQueryBuilder, sql } from "kysely";

// biome-ignore lint/suspicious/noExplicitAny: the query's tables pass through unchanged
type AnyQuery = SelectQueryBuilder<any, any, any>;

export interface Paging {
  sort_by: string;
  sort_order: "asc" | "desc";
  limit: number;
  offset: number;
}

/** Selects rows whose JSON columns contain the given values, also nested. */
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

export const escapeLike = (text: string): string => text.replace(/[!%_]/g, "!$&");

/** Case-insensitive; on SQLite only for A to Z. */
export const like = (column: string, pattern: string) =>
  sql<boolean>`lower(${sql.ref(column)}) like lower(${pattern}) escape '!'`;

/** One page in a stable order: `tiebreaker` orders rows with equal sort keys. */
export const paged =
  ({ sort_by, sort_order, limit, offset }: Paging, tiebreaker: string) =>
  <Q>(query: Q): Q =>
    (query as AnyQuery).orderBy(sort_by, sort_order).orderBy(tiebreaker, sort_order).limit(limit).offset(offset) as Q;
