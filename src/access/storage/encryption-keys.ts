import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { EncryptionKeyRow } from "./schema.ts";

/** Lets one process at a time look at the keys and add its own; until the transaction ends. */
export async function lockEncryptionKeys(tx: Tx): Promise<void> {
  // There may be no row to lock. SQLite has one writer at a time.
  if (tx.dialect.name === "postgres") await tx.run(sql`select pg_advisory_xact_lock(20241, 0)`.compile(tx.k));
}

/** All that this database has met, in the order in which it met them. */
export const listEncryptionKeys = (tx: Tx): Promise<EncryptionKeyRow[]> =>
  tx.all(tx.k.selectFrom("encryption_keys").selectAll().orderBy("created_at").orderBy("key_id"));

/** Leaves one that is there. */
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

/** For a key that encrypts again. */
export const unretireEncryptionKey = (tx: Tx, key_id: string): Promise<number> =>
  tx.run(tx.k.updateTable("encryption_keys").set({ retired_at: null }).where("key_id", "=", key_id));
