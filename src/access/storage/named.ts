import { type RawBuilder, sql } from "kysely";
import type { Tx } from "../../platform/database/database.ts";

/** A list of texts as a table with the column `key`: one parameter, where `in` would have one for each. */
export const named = (tx: Tx, texts: readonly string[]): RawBuilder<unknown> =>
  tx.dialect.jsonEntries(sql`${JSON.stringify(Object.fromEntries(texts.map((text) => [text, 0])))}`);
