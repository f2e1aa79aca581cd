import { type SelectQueryBuilder, sql } from "kysely";
import { type JsonOperator, nowMs, type Schema, type Tx } from "../../../platform/database/database.ts";
import { prepared } from "../../../platform/database/prepared.ts";
import type { StoreItemRow } from "../schema.ts";

export type ItemKey = Pick<StoreItemRow, "tenant_id" | "namespace" | "key">;

/** Identifies an item in its workspace. Namespaces end with a period and keys may contain periods, so the two cannot be concatenated. */
export const itemId = ({ namespace, key }: Pick<ItemKey, "namespace" | "key">): string =>
  JSON.stringify([namespace, key]);
export type NewItem = ItemKey & Pick<StoreItemRow, "value" | "ttl_ms">;

const isAlive = sql<boolean>`(store_items.expires_at is null or store_items.expires_at > now_ms())`;

const upsert = prepared<NewItem, unknown>((k, p) =>
  k
    .insertInto("store_items")
    .values({
      tenant_id: p("tenant_id"),
      namespace: p("namespace"),
      key: p("key"),
      value: p("value"),
      ttl_ms: p("ttl_ms"),
      created_at: nowMs,
      updated_at: nowMs,
      expires_at: sql<number | null>`now_ms() + cast(${p("ttl_ms")} as bigint)`,
    })
    .onConflict((conflict) =>
      conflict.columns(["tenant_id", "namespace", "key"]).doUpdateSet((e) => ({
        value: e.ref("excluded.value"),
        ttl_ms: e.ref("excluded.ttl_ms"),
        updated_at: e.ref("excluded.updated_at"),
        expires_at: e.ref("excluded.expires_at"),
        // A write to an expired item creates a new item.
        created_at: sql<number>`case when ${isAlive} then store_items.created_at else excluded.created_at end`,
      })),
    ),
);

/** Creates an item or replaces its value. */
export const putItem = (tx: Tx, item: NewItem): Promise<number> => tx.run(upsert(tx, item));

const select = prepared<ItemKey, StoreItemRow>((k, p) =>
  k
    .selectFrom("store_items")
    .selectAll()
    .where("tenant_id", "=", p("tenant_id"))
    .where("namespace", "=", p("namespace"))
    .where("key", "=", p("key"))
    .where(isAlive),
);

export const findItem = (tx: Tx, item: ItemKey): Promise<StoreItemRow | undefined> => tx.first(select(tx, item));

/** Items per statement; each adds three parameters. */
const MAX_KEYS = 500;

async function forKeys(items: readonly ItemKey[], run: (condition: ReturnType<typeof keysIn>) => Promise<unknown>) {
  for (let from = 0; from < items.length; from += MAX_KEYS) await run(keysIn(items.slice(from, from + MAX_KEYS)));
}

const keysIn = (items: readonly ItemKey[]) =>
  sql<boolean>`(tenant_id, namespace, key) in (values ${sql.join(
    items.map(({ tenant_id, namespace, key }) => sql`(${tenant_id}, ${namespace}, ${key})`),
  )})`;

/** @returns the number of deleted items */
export const deleteItem = (tx: Tx, item: ItemKey): Promise<number> =>
  tx.run(tx.k.deleteFrom("store_items").where(keysIn([item])));

export const deleteItems = (tx: Tx, items: readonly ItemKey[]): Promise<void> =>
  forKeys(items, (condition) => tx.run(tx.k.deleteFrom("store_items").where(condition)));

export const deleteVectors = (tx: Tx, items: readonly ItemKey[]): Promise<void> =>
  forKeys(items, (condition) => tx.run(tx.k.deleteFrom("store_vectors").where(condition)));

/** Restarts the time to live of items. Expired items stay expired. */
export const refreshItems = (tx: Tx, items: readonly ItemKey[]): Promise<void> =>
  forKeys(items, (condition) =>
    tx.run(
      tx.k
        .updateTable("store_items")
        .set({ expires_at: sql<number>`now_ms() + ttl_ms` })
        .where(condition)
        .where("ttl_ms", "is not", null)
        .where(isAlive),
    ),
  );

/** Locks expired items until the transaction ends. */
export const lockExpiredItems = (tx: Tx, limit: number): Promise<ItemKey[]> =>
  tx.all(
    tx.dialect.skipLocked(
      tx.k
        .selectFrom("store_items")
        .select(["tenant_id", "namespace", "key"])
        .where("expires_at", "<=", nowMs)
        .orderBy("expires_at")
        .limit(limit),
    ),
  );

export type FilterOperator = JsonOperator | "!=";

export interface FieldCondition {
  field: string;
  operator: FilterOperator;
  value: string | number | boolean | null;
}

export interface ItemFilter {
  tenant_id: string;
  /** The labels, each followed by a dot; empty for all namespaces. */
  prefix: string;
  conditions: readonly FieldCondition[];
}

/** Selects the namespaces that start with the labels of a prefix. The upper bound ends with "/", the next character after ".". */
export const below = (prefix: string, namespace = sql`store_items.namespace`) => {
  if (prefix === "") return sql<boolean>`1 = 1`;
  return sql<boolean>`(${namespace} >= ${prefix} and ${namespace} < ${`${prefix.slice(0, -1)}/`})`;
};

/** Builds the condition that an item is below the prefix, has not expired, and meets all conditions of the filter. */
export function isMatching(tx: Tx, { tenant_id, prefix, conditions }: ItemFilter, namespace?: typeof UNINDEXED) {
  const compared = conditions.map(({ field, operator, value }) =>
    operator === "!="
      ? sql<boolean>`not (${tx.dialect.jsonCompare("store_items.value", field, "=", value)})`
      : tx.dialect.jsonCompare("store_items.value", field, operator, value),
  );
  const all = [sql`store_items.tenant_id = ${tenant_id}`, below(prefix, namespace), isAlive, ...compared];
  return sql<boolean>`${sql.join(all, sql` and `)}`;
}

/** The namespace in a form for which the databases use no index. */
export const UNINDEXED = sql`(store_items.namespace || '')`;

/** Returns those of the items that match the filter, in any order. */
export async function findItems(tx: Tx, filter: ItemFilter, items: readonly ItemKey[]): Promise<StoreItemRow[]> {
  const found: StoreItemRow[] = [];
  await forKeys(items, async (condition) => {
    const query = tx.k
      .selectFrom("store_items")
      .selectAll()
      .where(condition)
      .where(isMatching(tx, filter, UNINDEXED));
    found.push(...(await tx.all(query)));
  });
  return found;
}

/** If a non-empty prefix has fewer items, all are read and sorted. Otherwise, items are read by update time until the page is full. */
const MAX_SORTED = 2_000;

/** Returns one page of items, most recently updated first. */
export async function searchItems(
  tx: Tx,
  filter: ItemFilter,
  { limit, offset }: { limit: number; offset: number },
): Promise<StoreItemRow[]> {
  const isSorted = filter.prefix !== "" && (await countBelow(tx, filter)) < MAX_SORTED;
  const query = tx.k
    .selectFrom("store_items")
    .selectAll()
    .where(isMatching(tx, filter, isSorted ? undefined : UNINDEXED))
    // The sum has no index either.
    .orderBy(isSorted ? sql`updated_at + 0` : sql`updated_at`, "desc");
  return tx.all(query.orderBy("namespace", "desc").orderBy("key", "desc").limit(limit).offset(offset));
}

async function countBelow(tx: Tx, { tenant_id, prefix }: ItemFilter): Promise<number> {
  const keys = tx.k.selectFrom("store_items").select("key").where("tenant_id", "=", tenant_id).where(below(prefix));
  const query = tx.k.selectFrom(keys.limit(MAX_SORTED).as("found")).select((s) => s.fn.countAll<number>().as("count"));
  return Number((await tx.first(query))?.count);
}

export interface NamespaceFilter {
  tenant_id: string;
  /** Regular expressions. A namespace must match all of them. */
  patterns: readonly string[];
  /** A literal prefix of the namespaces, used for the index lookup. */
  prefix: string;
  /** Matches the part of a namespace that is returned. */
  part: string | undefined;
  limit: number;
  offset: number;
}

/** Returns the namespaces with items, in the order of their bytes. */
export async function listNamespaces(tx: Tx, filter: NamespaceFilter): Promise<string[]> {
  const { tenant_id, patterns, prefix, part, limit, offset } = filter;
  const { dialect, k } = tx;
  const namespace = sql.ref<string>("namespace");
  const returned = part === undefined ? namespace : dialect.matchingText(namespace, part);
  let query: SelectQueryBuilder<Schema, "store_items", { namespace: string }> = k
    .selectFrom("store_items")
    .select(sql<string>`${returned}`.as("namespace"))
    .distinct()
    .where("tenant_id", "=", tenant_id)
    .where(below(prefix))
    .where(isAlive);
  for (const pattern of patterns) query = query.where(dialect.matchingText(namespace, pattern), "is not", null);
  const rows = await tx.all(query.orderBy(sql`1`).limit(limit).offset(offset));
  return rows.map((row) => row.namespace);
}
