import { CompiledQuery, type Insertable } from "kysely";
import type { Tx } from "./database.ts";
import type { Schema } from "./schema.ts";

/** Rows of one statement, besides the database's own limit: what a statement brings more than this many is below 1 µs a row. */
const MAX_ROWS = 200;

/**
 * The texts of statements by their database, table, columns and number of rows: they differ in their values alone. Building one of
 * 200 rows makes objects for each of 3,400 values, which left 50 MB in the heap when 10,000 rows were stored.
 */
const texts = new WeakMap<Tx["k"], Map<string, string>>();

/** Stores rows, several in a statement. All have the same fields, in the same order. */
export async function insertMany<T extends keyof Schema>(
  tx: Tx,
  table: T,
  rows: readonly Insertable<Schema[T]>[],
): Promise<void> {
  const columns = Object.keys(rows[0] ?? {});
  const size = Math.min(MAX_ROWS, Math.floor(tx.dialect.max_parameters / Math.max(columns.length, 1)));
  for (let from = 0; from < rows.length; from += size) {
    const some = rows.slice(from, from + size);
    const values = some.flatMap((row) => columns.map((column) => (row as Record<string, unknown>)[column]));
    await tx.run(CompiledQuery.raw(textFor(tx, table, columns, some), values));
  }
}

function textFor<T extends keyof Schema>(
  tx: Tx,
  table: T,
  columns: readonly string[],
  rows: readonly Insertable<Schema[T]>[],
): string {
  const known = texts.get(tx.k) ?? new Map<string, string>();
  texts.set(tx.k, known);
  const name = `${table} ${columns.join()} ${rows.length}`;
  const text =
    known.get(name) ??
    tx.k
      .insertInto(table)
      .values(rows as never)
      .compile().sql;
  // Only full ones come again; of the others there would be as many as there are lengths.
  if (rows.length === MAX_ROWS) known.set(name, text);
  return text;
}

/** Ids of one `in (...)`; more are asked for in several goes. */
const MAX_IDS = 5000;

/** Asks for records by their ids, some thousands at a time. */
export async function byIds<Id, R>(ids: readonly Id[], ask: (some: Id[]) => Promise<R[]>): Promise<R[]> {
  const found: R[] = [];
  for (let from = 0; from < ids.length; from += MAX_IDS) found.push(...(await ask(ids.slice(from, from + MAX_IDS))));
  return found;
}
