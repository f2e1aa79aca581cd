import { sql } from "kysely";
import type { Database, Tx } from "../../../platform/database/database.ts";
import { insertMany } from "../../../platform/database/insert-many.ts";
import type { StoreVectorRow } from "../schema.ts";
import { below, type ItemFilter, type ItemKey, isMatching, UNINDEXED } from "./items.ts";

/** First key of the advisory locks for inserting vectors; the second key is derived from the workspace ID. */
const INSERT_LOCKS = sql.lit(20_241);

/** Called before vectors are inserted; see {@link lastVectorNo}. */
export async function announceVectors(tx: Tx, tenant_id: string): Promise<void> {
  if (tx.dialect.name === "sqlite") return;
  await tx.run(sql`select pg_advisory_xact_lock_shared(${INSERT_LOCKS}, hashtext(${tenant_id}))`.compile(tx.k));
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
    await tx.run(sql`select pg_advisory_xact_lock(${INSERT_LOCKS}, hashtext(${tenant_id}))`.compile(tx.k));
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

/**
 * Returns the keys of the items of the given vectors that match the filter. Skips vectors that no longer exist. Without the values: an item
 * of 20 MB can have 1,000 vectors.
 */
export const findKeysOfVectors = (
  tx: Tx,
  filter: ItemFilter,
  numbers: readonly number[],
): Promise<(ItemKey & { vector_no: number })[]> =>
  tx.all(
    tx.k
      .selectFrom("store_vectors")
      // SQLite reads the tables of a cross join in this order, and uses no index for an expression: it starts with the numbers.
      .crossJoin("store_items")
      .where(sql<boolean>`(store_vectors.tenant_id || '') = store_items.tenant_id`)
      .whereRef("store_vectors.namespace", "=", "store_items.namespace")
      .whereRef("store_vectors.key", "=", "store_items.key")
      .where(isMatching(tx, filter, UNINDEXED))
      .select(["store_items.tenant_id", "store_items.namespace", "store_items.key", "store_vectors.vector_no"])
      .where("store_vectors.vector_no", "in", numbers),
  );

/** Vectors per transaction: 500 vectors of 384 dimensions take 25 ms. */
const PAGE = 500;

/** First key of the advisory locks for copying vectors; the second key is derived from the workspace ID. */
const COPY_LOCKS = sql.lit(20_242);

/** A lock that another transaction holds, with NOWAIT. */
const LOCK_NOT_AVAILABLE = "55P03";

const isReady = sql<boolean>`exists (select from pg_attribute where attrelid = to_regclass('store_embeddings')
  and attname = 'embedding' and atttypid = to_regtype('vector'))`;

/**
 * Returns whether Postgres can search vectors. Creates the table of copies if the extension pgvector is installed. Dropping the extension
 * drops the column `embedding`, and the next extension gets a new table.
 */
export async function prepareEmbeddings(database: Database): Promise<boolean> {
  const read = (tx: Tx) =>
    tx.first(
      sql<{ ready: boolean; installed: boolean }>`
        select ${isReady} as ready, to_regtype('vector') is not null as installed`.compile(tx.k),
    );
  const state = await read(database.read);
  if (state?.ready || !state?.installed) return state?.ready ?? false;
  try {
    await database.migrate(async (tx) => {
      // NOWAIT, because all writes to the store would queue behind a pending lock request, for example until CREATE INDEX or VACUUM ends.
      await tx.run(sql`lock table store_vectors in share row exclusive mode nowait`.compile(tx.k));
      if ((await read(tx))?.ready) return;
      for (const statement of CREATE) await tx.run(sql.raw(statement).compile(tx.k));
    });
  } catch (error) {
    if ((error as { code?: string }).code === LOCK_NOT_AVAILABLE) return false;
    throw error;
  }
  return true;
}

const CREATE = [
  "drop table if exists store_embeddings",
  `create table store_embeddings (
    vector_no bigint primary key references store_vectors on delete cascade, tenant_id text collate "C" not null,
    namespace text collate "C" not null, dims integer not null, embedding vector not null)`,
  // Reading vectors from outside the row would take several times as long.
  "alter table store_embeddings alter embedding set storage main",
  "create index store_embeddings_of_workspace on store_embeddings (tenant_id, vector_no)",
  "create index store_embeddings_of_namespace on store_embeddings (tenant_id, namespace)",
];

/** Copies the vectors of a workspace that were committed before this call, in the order of their numbers. */
export async function fillEmbeddings(database: Database, tenant_id: string): Promise<void> {
  const last = await lastVectorNo(database, tenant_id);
  if ((await lastCopied(database.read, tenant_id)) >= last) return;
  const copyPage = async (tx: Tx) => {
    await tx.run(sql`select pg_advisory_xact_lock(${COPY_LOCKS}, hashtext(${tenant_id}))`.compile(tx.k));
    const rows = await tx.all(
      tx.dialect.forShare(
        tx.k
          .selectFrom("store_vectors")
          .select(["vector_no", "namespace", "vector"])
          .where("tenant_id", "=", tenant_id)
          .where("vector_no", ">", await lastCopied(tx, tenant_id))
          .where("vector_no", "<=", last)
          .orderBy("vector_no")
          .limit(PAGE),
      ),
    );
    const copies = rows.map(({ vector, ...row }) => ({
      ...{ ...row, tenant_id, dims: vector.byteLength / 4, embedding: binaryOf(vector) },
    }));
    await insertMany(tx, "store_embeddings", copies);
    return rows.length;
  };
  while ((await database.write(copyPage)) === PAGE);
}

async function lastCopied(tx: Tx, tenant_id: string): Promise<number> {
  const query = tx.k.selectFrom("store_embeddings").where("tenant_id", "=", tenant_id);
  return (await tx.first(query.select((e) => e.fn.max("vector_no").as("last"))))?.last ?? 0;
}

/** Returns the `limit` vectors below a prefix that are most similar to the query, and their cosine similarity. */
export const findNearest = (
  tx: Tx,
  { tenant_id, prefix, query, limit }: { tenant_id: string; prefix: string; query: Uint8Array; limit: number },
): Promise<(Pick<StoreVectorRow, "vector_no"> & { score: number })[]> =>
  tx.all(
    tx.k
      .selectFrom("store_embeddings")
      .select(["vector_no", sql<number>`inner_product(embedding, ${binaryOf(query)}::vector)`.as("score")])
      .where("tenant_id", "=", tenant_id)
      .where(below(prefix, sql`store_embeddings.namespace`))
      .where("dims", "=", query.byteLength / 4)
      .orderBy("score", "desc")
      .limit(limit),
  );

/** Returns a vector in the binary format of pgvector: the number of dimensions and a zero in 16 bits each, and big-endian numbers. */
function binaryOf(vector: Uint8Array): Buffer {
  const binary = Buffer.alloc(4 + vector.byteLength);
  binary.writeUInt16BE(vector.byteLength / 4);
  binary.set(vector, 4);
  binary.subarray(4).swap32();
  return binary;
}
