import { sql } from "kysely";
import type { Tx } from "../../platform/database/database.ts";

/**
 * Every column that holds sealed texts, with the primary key of its table. A new one joins here: what is not listed is left behind
 * by a rotation of the encryption keys. The table has a `tenant_id`.
 */
export const SEALED_COLUMNS = [
  { table: "oauth_providers", primary_key: "id", column: "client_secret" },
  { table: "oauth_tokens", primary_key: "token_id", column: "secret" },
  { table: "oauth_flows", primary_key: "auth_id", column: "verifier" },
  { table: "deployments", primary_key: "deployment_id", column: "secrets" },
  { table: "deployments", primary_key: "deployment_id", column: "database_password" },
  { table: "revisions", primary_key: "revision_id", column: "secrets" },
  { table: "instances", primary_key: "instance_id", column: "api_key" },
] as const;

export type SealedColumn = (typeof SEALED_COLUMNS)[number];

export interface SealedText {
  row_id: string;
  tenant_id: string;
  sealed: string;
}

/** The texts of a column that another key than `key_id` has sealed, in the order of their rows, after the row `after`. */
export function listSealedByOthers(
  tx: Tx,
  { table, primary_key, column }: SealedColumn,
  { key_id, after, limit }: { key_id: string; after: string; limit: number },
): Promise<SealedText[]> {
  const [id, sealed] = [sql.ref(primary_key), sql.ref(column)];
  return tx.all(
    sql<SealedText>`
      select ${id} as row_id, tenant_id, ${sealed} as sealed from ${sql.table(table)}
      where ${sealed} is not null and ${keyIdOf(column)} <> ${key_id} and ${id} > ${after}
      order by ${id} limit ${limit}`.compile(tx.k),
  );
}

/** Puts a text in the place of one that nobody has changed meanwhile; how many rows that were says whether. */
export function replaceSealed(
  tx: Tx,
  { table, primary_key, column }: SealedColumn,
  { row_id, sealed }: SealedText,
  sealed_anew: string,
): Promise<number> {
  const [id, text] = [sql.ref(primary_key), sql.ref(column)];
  return tx.run(
    sql`update ${sql.table(table)} set ${text} = ${sealed_anew} where ${id} = ${row_id} and ${text} = ${sealed}`.compile(
      tx.k,
    ),
  );
}

/** How many texts of a column each key has sealed. */
export function countSealed(tx: Tx, { table, column }: SealedColumn): Promise<{ key_id: string; texts: number }[]> {
  return tx.all(
    sql<{ key_id: string; texts: number }>`
      select key_id, count(*) as texts from
        (select ${keyIdOf(column)} as key_id from ${sql.table(table)} where ${sql.ref(column)} is not null) as sealed
      group by key_id`.compile(tx.k),
  );
}

/** The id within `v1.<id>.<the rest>`. */
const keyIdOf = (column: string) => sql<string>`substr(${sql.ref(column)}, 4, 8)`;
