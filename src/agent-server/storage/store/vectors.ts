import { sql } from "kysely";
import type { Database, Tx } from "../../../platform/database/database.ts";
import { insertMany } from "../../../platform/database/insert-many.ts";
import type { StoreItemRow, StoreVectorRow } from "../schema.ts";
import { type ItemFilter, type ItemKey, isMatching, UNINDEXED } from "./items.ts";

/** First key of the advisory locks for inserting vectors; the second key is derived from the workspace ID. */
const LOCK_CLASS = sql.lit(20_241);

/** Called before vectors are inserted; see {@link lastVectorNo}. */
export async function announceVectors(tx: Tx, tenant_id: string): Promise<void> {
  if (tx.dialect.name === "sqlite") return;
  await tx.run(sql`select pg_advisory_xact_lock_shared(${LOCK_CLASS}, hashtext(${tenant_id}))`.compile(tx.k));
}

/**
 * Returns a workspace's last vector number: no vector with a lower number is committed later. On Postgres this waits for the transactions
 * that insert vectors, because vectors may be committed in a different order than their numbers.
 */
export async function lastVectorNo(database: Database, tenant_id: string): Promise<number> {
  const readLast = async (tx: Tx): Promise<number> => {
    const query = tx.k.selectFrom("store_vectors").where("tenant_id", "=", tenant_id);
    return (await tx.first(query.select((e) => e.fn.max("vector_no").as("last"))))?.last ?? 0;
  };
  if (database.read.dialect.name === "sqlite") return readLast(database.read);
  return database.write(async (tx) => {
    await tx.run(sql`select pg_advisory_xact_lock(${LOCK_CLASS}, hashtext(${tenant_id}))`.compile(tx.k));
    return readLast(tx);
  });
}

/** Counts the vectors of a workspace whose `vector_no` is greater than `after`. */
export async function countVectors(tx: Tx, tenant_id: string, after: number): Promise<number> {
  const query = tx.k.selectFrom("store_vectors").where("tenant_id", "=", tenant_id).where("vector_no", ">", after);
  return Number((await tx.first(query.select((e) => e.fn.countAll<number>().as("count"))))?.count);
}

export const insertVectors = (tx: Tx, item: ItemKey, vectors: readonly Uint8Array[]): Promise<void> =>
  insertMany(
    tx,
    "store_vectors",
    vectors.map((vector) => ({ ...item, vector })),
  );

/** Returns up to `limit` vectors of a workspace with `after < vector_no <= last`, in the order of `vector_no`. */
export const listVectors = (
  tx: Tx,
  tenant_id: string,
  { after, last, limit }: { after: number; last: number; limit: number },
): Promise<Pick<StoreVectorRow, "vector_no" | "namespace" | "vector">[]> =>
  tx.all(
    tx.k
      .selectFrom("store_vectors")
      .select(["vector_no", "namespace", "vector"])
      .where("tenant_id", "=", tenant_id)
      .where("vector_no", ">", after)
      .where("vector_no", "<=", last)
      .orderBy("vector_no")
      .limit(limit),
  );

/** Returns the items of the given vectors that match the filter. Skips vectors that no longer exist. */
export const findItemsOfVectors = (
  tx: Tx,
  filter: ItemFilter,
  numbers: readonly number[],
): Promise<(StoreItemRow & { vector_no: number })[]> =>
  tx.all(
    tx.k
      .selectFrom("store_vectors")
      // SQLite reads the tables of a cross join in this order, and uses no index for an expression: it starts with the numbers.
      .crossJoin("store_items")
      .where(sql<boolean>`(store_vectors.tenant_id || '') = store_items.tenant_id`)
      .whereRef("store_vectors.namespace", "=", "store_items.namespace")
      .whereRef("store_vectors.key", "=", "store_items.key")
      .where(isMatching(tx, filter, UNINDEXED))
      .selectAll("store_items")
      .select("store_vectors.vector_no")
      .where("store_vectors.vector_no", "in", numbers),
  );
