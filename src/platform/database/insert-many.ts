import { CompiledQuery, type Insertable } from "kysely";
import type { Tx } from "./database.ts";
import type { Schema } from "./schema.ts";

/** Maximum rows of a statement, besides the database's own limit. Larger statements save less than 1 µs for each row. */
const MAX_ROWS = 200;

/** Inserts rows, several in a statement. All rows have the same fields in the same order. */
export async function insertMany<T extends keyof Schema>(
  tx: Tx,
  table: T,
  rows: readonly Insertable<Schema[T]>[],
): Promise<void> {
  const columns = Object.keys(rows[0] ?? {});
  const size = Math.min(MAX_ROWS, Math.floor(tx.dialect.max_parameters / Math.max(columns.length, 1)));
  for (let from = 0; from < rows.length; from += size) {
    const batch = rows.slice(from, from + size);
    const values = batch.flatMap((row) => columns.map((column) => (row as Record<string, unknown>)[column]));
    await tx.run(CompiledQuery.raw(statementFor(tx, table, columns, batch), values));
  }
}

/**
 * Statements of one form differ in their values only. Building a statement of 200 rows creates objects for 3,400 values, which left
 * 50 MB in the heap after 10,000 rows.
 */
function statementFor<T extends keyof Schema>(
  tx: Tx,
  table: T,
  columns: readonly string[],
  rows: readonly Insertable<Schema[T]>[],
): string {
  const { inserts } = tx.statements;
  const form = `${table} ${columns.join()} ${rows.length}`;
  const text =
    inserts.get(form) ??
    tx.k
      .insertInto(table)
      .values(rows as never)
      .compile().sql;
  // Only full batches recur; caching all others would add an entry for every length.
  if (rows.length === MAX_ROWS) inserts.set(form, text);
  return text;
}

/** Maximum ids of one `in (...)`. */
const MAX_IDS = 5000;

/** Reads records by their ids, in batches of {@link MAX_IDS}. */
export async function byIds<Id, R>(ids: readonly Id[], read: (batch: Id[]) => Promise<R[]>): Promise<R[]> {
  const found: R[] = [];
  for (let from = 0; from < ids.length; from += MAX_IDS) found.push(...(await read(ids.slice(from, from + MAX_IDS))));
  return found;
}
