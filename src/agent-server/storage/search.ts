import { type SelectQueryBuilder, sql } from "kysely";

// Parts that the searches of all nouns share. The builders' types name their tables, which do not matter here.
// biome-ignore lint/suspicious/noExplicitAny: the query's tables pass through unchanged
type AnyQuery = SelectQueryBuilder<any, any, any>;

export interface Paging {
  sort_by: string;
  sort_order: "asc" | "desc";
  limit: number;
  offset: number;
}

/** Keeps the rows whose JSON columns contain the given values (see `contains` in lib/json.ts). */
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

/** A text as part of a pattern for {@link like}: its `%` and `_` stand for themselves. */
export const plain = (text: string): string => text.replace(/[!%_]/g, "!$&");

/** In any case, as far as the database's lower() knows letters: SQLite's knows A to Z. */
export const like = (column: string, pattern: string) =>
  sql<boolean>`lower(${sql.ref(column)}) like lower(${pattern}) escape '!'`;

/** One page in a stable order: rows that sort alike are told apart by `tiebreaker`. */
export const paged =
  ({ sort_by, sort_order, limit, offset }: Paging, tiebreaker: string) =>
  <Q>(query: Q): Q =>
    (query as AnyQuery).orderBy(sort_by, sort_order).orderBy(tiebreaker, sort_order).limit(limit).offset(offset) as Q;
