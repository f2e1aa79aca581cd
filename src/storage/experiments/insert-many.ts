import type { Insertable } from "kysely";
import type { Tx } from "../database.ts";
import type { Schema } from "../schema.ts";

/** Rows of one statement, besides the database's own limit: what a statement brings more than this many is below 1 µs a row. */
const MOST_ROWS = 200;

/** Stores rows, several in a statement. All have the same fields. */
export async function insertMany<T extends keyof Schema>(
  tx: Tx,
  table: T,
  rows: readonly Insertable<Schema[T]>[],
): Promise<void> {
  const columns = Object.keys(rows[0] ?? {}).length;
  const size = Math.min(MOST_ROWS, Math.floor(tx.dialect.most_parameters / Math.max(columns, 1)));
  for (let from = 0; from < rows.length; from += size)
    await tx.run(tx.k.insertInto(table).values(rows.slice(from, from + size) as never));
}

/** Ids of one `in (...)`; more are asked for in several goes. */
const MOST_IDS = 5000;

/** Asks for records by their ids, some thousands at a time. */
export async function byIds<Id, R>(ids: readonly Id[], ask: (some: Id[]) => Promise<R[]>): Promise<R[]> {
  const found: R[] = [];
  for (let from = 0; from < ids.length; from += MOST_IDS) found.push(...(await ask(ids.slice(from, from + MOST_IDS))));
  return found;
}
