import { CompiledQuery, type Insertable } from "kysely";
import type { Schema, Tx } from "./database.ts";

/** Maximum number of rows per statement. Larger statements save less than 1 µs per row. */
const MAX_ROWS = 200;

/** Inserts rows with the same fields. Statements for 200 rows and for 1 row are cached: building one for 200 rows creates 3,400 objects. */
export async function insertMany<T extends keyof Schema>(
  tx: Tx,
  table: T,
  rows: readonly Insertable<Schema[T]>[],
): Promise<void> {
  const { inserts } = tx.statements;
  const columns = Object.keys(rows[0] ?? {});
  const size = Math.min(MAX_ROWS, Math.floor(tx.dialect.max_parameters / Math.max(columns.length, 1)));
  for (let from = 0; from < rows.length; from += size) {
    const batch = rows.slice(from, from + size);
    const form = `${table} ${columns.join()} ${batch.length}`;
    const build = () => tx.k.insertInto(table).values(batch as never);
    const text = inserts.get(form) ?? build().compile().sql;
    if (batch.length === MAX_ROWS || batch.length === 1) inserts.set(form, text);
    const values = batch.flatMap((row) => columns.map((column) => (row as Record<string, unknown>)[column]));
    await tx.run(CompiledQuery.raw(text, values));
  }
}

/** Maximum number of IDs in one `in (...)`. */
const MAX_IDS = 5000;

export async function byIds<Id, R>(ids: readonly Id[], read: (batch: Id[]) => Promise<R[]>): Promise<R[]> {
  const found: R[] = [];
  for (let from = 0; from < ids.length; from += MAX_IDS) found.push(...(await read(ids.slice(from, from + MAX_IDS))));
  return found;
}
