import type { Database, Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import type {
  Item,
  ItemFilter,
  ItemKey,
  ItemPut,
  ItemRead,
  ItemSearch,
  NamespaceList,
  SearchItem,
} from "../contract/store.ts";
import type { StoreItemRow } from "../storage/schema.ts";
import * as items from "../storage/store/items.ts";
import { announceVectors, insertVectors } from "../storage/store/vectors.ts";
import { type Embed, type ScoredRow, SemanticIndex } from "./semantic-index.ts";

/** `store` of langgraph.json. */
export interface StoreSettings {
  /** Undefined without semantic search. */
  index: { dims: number; fields: readonly string[] } | undefined;
  ttl: {
    refresh_on_read: boolean;
    /** Time to live of items that are written without one. Undefined: they do not expire. */
    default_ms: number | undefined;
    sweep_interval_ms: number;
  };
}

/** A write that is ready to be stored. Without `put` it is a deletion. */
export interface StoreWrite {
  item: items.ItemKey;
  put?: Pick<items.NewItem, "value" | "ttl_ms"> & { vectors: Uint8Array[] };
}

/** Expired items per transaction of the sweep. */
const SWEEP_BATCH = 500;

const MS_PER_MINUTE = 60_000;

/** Reads and writes the items of workspaces, for clients and for graphs. */
export class Store {
  readonly #database: Database;
  readonly #settings: StoreSettings;
  readonly #semantic: SemanticIndex | undefined;

  constructor(database: Database, settings: StoreSettings & { max_loaded_vector_bytes: number }, embed: Embed) {
    this.#database = database;
    this.#settings = settings;
    this.#semantic =
      settings.index &&
      new SemanticIndex(database, { ...settings.index, max_loaded_bytes: settings.max_loaded_vector_bytes }, embed);
  }

  async put(tenant_id: string, puts: readonly ItemPut[]): Promise<void> {
    const writes = await this.preparePuts(tenant_id, puts);
    await this.#database.write((tx) => this.write(tx, writes));
  }

  async delete(tenant_id: string, key: ItemKey): Promise<void> {
    await this.#database.write((tx) => this.write(tx, [this.prepareDelete(tenant_id, key)]));
  }

  /** Prepares writes for {@link write}. */
  async preparePuts(tenant_id: string, puts: readonly ItemPut[]): Promise<StoreWrite[]> {
    if (!this.#semantic && puts.some(({ index }) => index)) throw withoutIndex("index");
    const vectors = await this.#semantic?.vectorsOf(puts);
    return puts.map(({ value, ttl, ...key }, n) => ({
      item: rowKey(tenant_id, key),
      put: { value: JSON.stringify(value), ttl_ms: this.#ttl(ttl), vectors: vectors?.[n] ?? [] },
    }));
  }

  prepareDelete(tenant_id: string, key: ItemKey): StoreWrite {
    return { item: rowKey(tenant_id, key) };
  }

  /** Stores writes. Of several writes to an item, only the last has an effect. */
  async write(tx: Tx, writes: readonly StoreWrite[]): Promise<void> {
    const last = [...new Map(writes.map((write) => [items.itemId(write.item), write])).values()];
    // All transactions lock items in the same order, so that they cannot deadlock.
    last.sort((a, b) => compareKeys(a.item, b.item));
    const indexed = last.find(({ put }) => put && put.vectors.length > 0);
    if (indexed) await announceVectors(tx, indexed.item.tenant_id);
    for (const { item, put } of last) {
      // The item is locked before its vectors are replaced. An item that does not exist cannot be locked: another transaction may store it.
      if (put) await items.putItem(tx, { ...item, value: put.value, ttl_ms: put.ttl_ms });
      else if ((await items.deleteItem(tx, item)) === 0) continue;
      await items.deleteVectors(tx, [item]);
      if (put) await insertVectors(tx, item, put.vectors);
    }
  }

  async get(tenant_id: string, { refresh_ttl, ...key }: ItemRead): Promise<Item | null> {
    const row = await items.findItem(this.#database.read, rowKey(tenant_id, key));
    if (!row) return null;
    await this.#refresh([row], refresh_ttl);
    return toItem(row);
  }

  async search(
    tenant_id: string,
    { namespace_prefix, filter = {}, query, ...rest }: ItemSearch,
  ): Promise<SearchItem[]> {
    const { limit, offset, refresh_ttl } = rest;
    const matching = { tenant_id, prefix: namespaceText(namespace_prefix), conditions: conditionsOf(filter) };
    if (query !== undefined && !this.#semantic) throw withoutIndex("query");
    const rows =
      query !== undefined && this.#semantic
        ? await this.#semantic.search(matching, query, { limit, offset })
        : await items.searchItems(this.#database.search, matching, { limit, offset });
    await this.#refresh(rows, refresh_ttl);
    return rows.map(({ score, ...row }: ScoredRow) => ({ ...toItem(row), ...(score !== undefined && { score }) }));
  }

  async listNamespaces(tenant_id: string, body: NamespaceList): Promise<string[][]> {
    const { prefix, suffix, max_depth, limit, offset } = body;
    const literal = prefix.slice(0, prefix.includes("*") ? prefix.indexOf("*") : undefined);
    const patterns = [
      ...(prefix.includes("*") ? [`^${patternOf(prefix)}`] : []),
      ...(suffix.length > 0 ? [`(?:^|\\.)${patternOf(suffix)}$`] : []),
    ];
    const part = max_depth === undefined ? undefined : `^(?:[^.]+\\.){1,${max_depth}}`;
    const filter = { tenant_id, patterns, prefix: namespaceText(literal), part, limit, offset };
    return (await items.listNamespaces(this.#database.search, filter)).map(labelsOf);
  }

  /** Deletes expired items. */
  async sweep(): Promise<void> {
    const sweepBatch = async (tx: Tx) => {
      const expired = await items.lockExpiredItems(tx, SWEEP_BATCH);
      await items.deleteVectors(tx, expired);
      await items.deleteItems(tx, expired);
      return expired.length;
    };
    while ((await this.#database.write(sweepBatch)) === SWEEP_BATCH);
  }

  async stop(): Promise<void> {
    await this.#semantic?.stop();
  }

  async #refresh(rows: readonly StoreItemRow[], refresh_ttl = this.#settings.ttl.refresh_on_read): Promise<void> {
    const expiring = refresh_ttl ? rows.filter(({ ttl_ms }) => ttl_ms !== null) : [];
    if (expiring.length === 0) return;
    await this.#database.write((tx) => items.refreshItems(tx, expiring.toSorted(compareKeys)));
  }

  #ttl(minutes: number | null | undefined): number | null {
    if (minutes === undefined) return this.#settings.ttl.default_ms ?? null;
    return minutes === null ? null : Math.ceil(minutes * MS_PER_MINUTE);
  }
}

const withoutIndex = (field: string) =>
  new ApiError("invalid_request", {
    reason: `body.${field}: requires an embedding function: set store.index in langgraph.json`,
  });

const rowKey = (tenant_id: string, { namespace, key }: ItemKey): items.ItemKey => ({
  tenant_id,
  namespace: namespaceText(namespace),
  key,
});

const namespaceText = (labels: readonly string[]): string => labels.map((label) => `${label}.`).join("");
const labelsOf = (namespace: string): string[] => namespace.slice(0, -1).split(".");

function compareKeys(a: items.ItemKey, b: items.ItemKey): number {
  if (a.namespace !== b.namespace) return a.namespace < b.namespace ? -1 : 1;
  return a.key < b.key ? -1 : 1;
}

/** Returns a regular expression that both databases support. `*` matches any label. */
const patternOf = (labels: readonly string[]): string =>
  labels.map((label) => `${label === "*" ? "[^.]+" : label.replaceAll(/[\\^$*+?()[\]{}|]/g, "\\$&")}\\.`).join("");

const OPERATORS = { $eq: "=", $ne: "!=", $gt: ">", $gte: ">=", $lt: "<", $lte: "<=" } as const;

const conditionsOf = (filter: ItemFilter): items.FieldCondition[] =>
  Object.entries(filter).flatMap(([field, expected]) => {
    const operators = typeof expected === "object" && expected !== null ? expected : { $eq: expected };
    return Object.entries(operators).map(([name, value]) => ({
      field,
      operator: OPERATORS[name as keyof typeof OPERATORS],
      value,
    }));
  });

const toItem = (row: StoreItemRow): Item => ({
  namespace: labelsOf(row.namespace),
  key: row.key,
  value: JSON.parse(row.value),
  created_at: isoOfMilliseconds(row.created_at),
  updated_at: isoOfMilliseconds(row.updated_at),
});
