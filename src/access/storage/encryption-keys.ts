import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { EncryptionKeyRow } from "./schema.ts";

/** Serializes the comparison and registration of keys across processes until the transaction ends. */
export async function lockEncryptionKeys(tx: Tx): Promise<void> {
  // An advisory lock, because the table may be empty. SQLite needs none: it has one writer at a time.
  if (tx.dialect.name === "postgres") await tx.run(sql`select pg_advisory_xact_lock(20241, 0)`.compile(tx.k));
}

export const listEncryptionKeys = (tx: Tx): Promise<EncryptionKeyRow[]> =>
  tx.all(tx.k.selectFrom("encryption_keys").selectAll().orderBy("created_at").orderBy("key_id"));

/** Registers a key. An existing row stays unchanged. */
export const insertEncryptionKey = (tx: Tx, key: Pick<EncryptionKeyRow, "key_id" | "check_value">): Promise<number> =>
  tx.run(
    tx.k
      .insertInto("encryption_keys")
      .values({ ...key, created_at: nowMs, retired_at: null })
      .onConflict((conflict) => conflict.column("key_id").doNothing()),
  );

export const retireEncryptionKey = (tx: Tx, key_id: string): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("encryption_keys")
      .set({ retired_at: nowMs })
      .where("key_id", "=", key_id)
      .where("retired_at", "is", null),
  );

/** Reactivates a retired key that is configured again as the encrypting key. */
export const unretireEncryptionKey = (tx: Tx, key_id: string): Promise<number> =>
  tx.run(tx.k.updateTable("encryption_keys").set({ retired_at: null }).where("key_id", "=", key_id));

/** The sealed columns that a rotation re-encrypts: all except `encryption_keys.check_value`. Each table has a `tenant_id`. */
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

/** A page of a column's texts that are not sealed with `key_id`, ordered by row id, starting after the row `after`. */
export function listSealedByOtherKeys(
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

/** Replaces a text unless it has changed since it was read. @returns 1 if it was replaced, else 0 */
export function replaceSealed(
  tx: Tx,
  { table, primary_key, column }: SealedColumn,
  { row_id, sealed }: SealedText,
  new_sealed: string,
): Promise<number> {
  const [id, text] = [sql.ref(primary_key), sql.ref(column)];
  return tx.run(
    sql`update ${sql.table(table)} set ${text} = ${new_sealed} where ${id} = ${row_id} and ${text} = ${sealed}`.compile(
      tx.k,
    ),
  );
}

export function countSealed(tx: Tx, { table, column }: SealedColumn): Promise<{ key_id: string; texts: number }[]> {
  return tx.all(
    sql<{ key_id: string; texts: number }>`
      select key_id, count(*) as texts from
        (select ${keyIdOf(column)} as key_id from ${sql.table(table)} where ${sql.ref(column)} is not null) as sealed
      group by key_id`.compile(tx.k),
  );
}

/** SQL expression for the key ID in a sealed text, which has the format `v1.<key id>.<rest>`. */
const keyIdOf = (column: string) => sql<string>`substr(${sql.ref(column)}, 4, 8)`;
