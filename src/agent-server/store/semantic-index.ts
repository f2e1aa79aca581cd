import type { Database } from "../../platform/database/database.ts";
import { byIds } from "../../platform/database/insert-many.ts";
import { ApiError, ConfigError } from "../../platform/errors.ts";
import { WorkerRpc } from "../../platform/lib/worker-rpc.ts";
import { INVALID_PATH, type ItemPut, TEXT_PATH } from "../contract/store.ts";
import type { EmbedQuery } from "../graph-hosts/host-store.ts";
import { queryFailure } from "../graph-hosts/query-host.ts";
import type { StoreItemRow } from "../storage/schema.ts";
import { findItems, type ItemFilter, type ItemKey, itemId } from "../storage/store/items.ts";
import {
  countVectors,
  fillEmbeddings,
  findKeysOfVectors,
  findNearest,
  lastVectorNo,
  listVectors,
  prepareEmbeddings,
} from "../storage/store/vectors.ts";
import type { Nearest, VectorOperations } from "./vector-search-thread.ts";

/** Calls the embedding function of the project in a graph host. */
export type Embed = (query: EmbedQuery) => Promise<Float32Array>;

export type ScoredRow = StoreItemRow & { score?: number };
type ScoredKey = ItemKey & { score: number };

/** Maximum number of texts in a write. Each text is stored as one vector. */
const MAX_TEXTS = 1_000;
/** Additional vectors in the first check: some items do not match the filter, and some have several vectors. */
const FIRST_CHECK = 100;

/** Embeds the texts of items, and finds the items whose texts are most similar to a query. */
export class SemanticIndex {
  readonly #database: Database;
  readonly #index: { dims: number; fields: readonly string[] };
  readonly #embed: Embed;
  readonly #vectors: VectorSearch;

  constructor(
    database: Database,
    index: { dims: number; fields: readonly string[]; max_loaded_bytes: number },
    embed: Embed,
  ) {
    const wrong = index.fields.find((path) => !TEXT_PATH.test(path));
    if (wrong !== undefined)
      throw new ConfigError(
        `store.index.fields in langgraph.json contains the invalid path "${wrong}": each entry ${INVALID_PATH}.`,
      );
    this.#database = database;
    this.#index = index;
    this.#embed = embed;
    this.#vectors = new VectorSearch(database, index);
  }

  /** Returns the vectors of the texts of each write. */
  async vectorsOf(puts: readonly Pick<ItemPut, "value" | "index">[]): Promise<Uint8Array[][]> {
    const texts = puts.map(({ value, index }) =>
      index === false ? [] : (index ?? this.#index.fields).flatMap((path) => textsAt(value, path)),
    );
    for (const { length } of texts)
      if (length > MAX_TEXTS)
        throw new ApiError("invalid_request", {
          reason: `the paths of body.index (default: store.index.fields in langgraph.json) match ${length} texts in the value; the limit is ${MAX_TEXTS}`,
        });
    const vectors = await this.#vectorsOfTexts(texts.flat(), false);
    let next = 0;
    return texts.map((list) => list.map(() => bytesOf(vectors[next++] as Float32Array)));
  }

  /** Returns a page of the items that match the filter, most similar first. */
  async search(
    filter: ItemFilter,
    query: string,
    { limit, offset }: { limit: number; offset: number },
  ): Promise<ScoredRow[]> {
    const [vector] = (await this.#vectorsOfTexts([query], true)) as [Float32Array];
    return this.#vectors.use(filter.tenant_id, async (nearest) => {
      const wanted = offset + limit;
      for (let checked = wanted * 2 + FIRST_CHECK; ; checked *= 4) {
        const { numbers, scores } = await nearest(filter.prefix, vector, checked);
        const keys = await this.#keysOf(filter, numbers, scores);
        if (keys.length >= wanted || numbers.length < checked) return this.#rowsOf(filter, keys.slice(offset, wanted));
      }
    });
  }

  stop(): Promise<void> {
    return this.#vectors.stop();
  }

  /** Returns the keys of the matching items of vectors, each with its best score. */
  async #keysOf(filter: ItemFilter, numbers: readonly number[], scores: readonly number[]): Promise<ScoredKey[]> {
    const keys = await byIds(numbers, (batch) => findKeysOfVectors(this.#database.search, filter, batch));
    const by_number = new Map(keys.map(({ vector_no, ...key }) => [vector_no, key]));
    const found = new Map<string, ScoredKey>();
    for (const [n, number] of numbers.entries()) {
      const key = by_number.get(number);
      if (!key) continue;
      const id = itemId(key);
      if (!found.has(id)) found.set(id, { ...key, score: scores[n] as number });
    }
    return [...found.values()];
  }

  /** Returns the items of a page in its order, without those that another request has changed or deleted since the keys were read. */
  async #rowsOf(filter: ItemFilter, keys: readonly ScoredKey[]): Promise<ScoredRow[]> {
    const rows = await findItems(this.#database.search, filter, keys);
    const by_id = new Map(rows.map((row) => [itemId(row), row]));
    return keys.flatMap((key) => {
      const row = by_id.get(itemId(key));
      return row ? [{ ...row, score: key.score }] : [];
    });
  }

  /** @throws ApiError graph_failed if the embedding function fails; unavailable if its graph host fails */
  async #vectorsOfTexts(texts: string[], is_query: boolean): Promise<Float32Array[]> {
    if (texts.length === 0) return [];
    const { dims } = this.#index;
    try {
      const packed = await this.#embed({ kind: "embed", texts, is_query, dims });
      return texts.map((_, n) => packed.subarray(n * dims, (n + 1) * dims));
    } catch (error) {
      throw queryFailure(error);
    }
  }
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

/** Returns the texts at a path (see `TEXT_PATH`) of a JSON value: strings as they are, other values as JSON. Omits null values. */
function textsAt(value: unknown, path: string): string[] {
  let found: unknown[] = [value];
  if (path !== "$")
    for (const [, field, index] of path.matchAll(/([^.[\]]+)|\[([^\]]+)\]/g))
      found = found.flatMap((part) => (field === undefined ? itemsAt(part, index as string) : memberOf(part, field)));
  return found.filter((part) => part !== null).map((part) => (typeof part === "string" ? part : JSON.stringify(part)));
}

const memberOf = (part: unknown, field: string): unknown[] =>
  typeof part === "object" && part !== null && Object.hasOwn(part, field)
    ? [(part as Record<string, unknown>)[field]]
    : [];

function itemsAt(part: unknown, index: string): unknown[] {
  if (!Array.isArray(part)) return [];
  if (index === "*") return part;
  const item = part.at(Number(index));
  return item === undefined ? [] : [item];
}

/** Vectors per database query: a page of vectors with 384 dimensions takes 3 MB. */
const VECTORS_PER_QUERY = 2_000;
/** The vectors of the most recently searched workspaces stay in memory, up to this many bytes. */
const MAX_MEMORY_BYTES = 2 ** 30;
/** Each workspace counts as at least this many bytes: it reserves 8 GiB of virtual addresses, of which a process has 128 TiB. */
const MIN_WORKSPACE_BYTES = 2 ** 20;
/** All vectors of a workspace are loaded again, without deleted ones, when their number exceeds this multiple of the last full load. */
const MAX_GROWTH = 2;
const MIN_RELOAD = 10_000;

interface Loaded {
  last_no: number;
  count: number;
  /** Number of vectors in the last full load; undefined until it has completed. */
  initial: number | undefined;
  loading: Promise<void>;
  /** Searches in progress, during which the vectors stay in memory. */
  users: number;
}

const newlyLoaded = (): Loaded => ({ last_no: 0, count: 0, initial: undefined, loading: Promise.resolve(), users: 0 });

/** Finds the `limit` most similar vectors in the namespaces with a prefix. */
type FindNearest = (prefix: string, query: Float32Array, limit: number) => Promise<Nearest>;

/**
 * Exact search over the vectors of a workspace in a worker thread. The first search of a workspace loads its vectors. Later ones load what
 * was added since. Deleted vectors are still found: the caller checks whether they exist. Large workspaces are searched in Postgres if it has
 * the extension pgvector, which takes longer but no memory of this process.
 */
class VectorSearch {
  readonly #database: Database;
  readonly #dims: number;
  readonly #max_loaded_bytes: number;
  /** Workspaces whose vectors exceeded `max_loaded_bytes`. */
  readonly #large = new Set<string>();
  /** By workspace, least recently searched first. */
  readonly #loaded = new Map<string, Loaded>();
  readonly #worker = new WorkerRpc<VectorOperations>({
    entry: new URL("./vector-search-thread", import.meta.url),
    name: "vector search",
    lostError: (cause) => {
      this.#loaded.clear();
      return cause as Error;
    },
  });

  /** @param max_loaded_bytes maximum size of the vectors of a workspace in memory, if Postgres can search them */
  constructor(database: Database, { dims, max_loaded_bytes }: { dims: number; max_loaded_bytes: number }) {
    this.#database = database;
    this.#dims = dims;
    this.#max_loaded_bytes = max_loaded_bytes;
  }

  /** Calls `work` with a function that searches the vectors that were committed before this call. */
  async use<T>(tenant_id: string, work: (nearest: FindNearest) => Promise<T>): Promise<T> {
    if (await this.#isInPostgres(tenant_id)) {
      await fillEmbeddings(this.#database, tenant_id);
      return work((...args) => this.#findInPostgres(tenant_id, ...args));
    }
    const loaded = this.#loaded.get(tenant_id) ?? newlyLoaded();
    this.#loaded.delete(tenant_id);
    this.#loaded.set(tenant_id, loaded);
    loaded.users++;
    try {
      loaded.loading = loaded.loading.catch(() => undefined).then(() => this.#load(tenant_id, loaded));
      await loaded.loading;
      await this.#evict();
      return await work((...args) => this.#worker.call("search", [tenant_id, ...args]));
    } finally {
      loaded.users--;
    }
  }

  stop(): Promise<void> {
    return this.#worker.terminate();
  }

  async #isInPostgres(tenant_id: string): Promise<boolean> {
    if (this.#database.read.dialect.name === "sqlite") return false;
    if (!this.#large.has(tenant_id)) {
      const { last_no, count } = this.#loaded.get(tenant_id) ?? newlyLoaded();
      const exceeds = (vectors: number) => vectors * this.#dims * 4 > this.#max_loaded_bytes;
      if (!exceeds(count + (await countVectors(this.#database.read, tenant_id, last_no)))) return false;
      // Some of the loaded vectors may have been deleted.
      if (!exceeds(await countVectors(this.#database.read, tenant_id, 0))) return false;
      this.#large.add(tenant_id);
    }
    if (!(await prepareEmbeddings(this.#database))) return false;
    if (this.#loaded.get(tenant_id)?.users === 0) await this.#drop(tenant_id);
    return true;
  }

  async #findInPostgres(tenant_id: string, prefix: string, query: Float32Array, limit: number): Promise<Nearest> {
    const bytes = new Uint8Array(query.buffer, query.byteOffset, query.byteLength);
    const rows = await findNearest(this.#database.search, { tenant_id, prefix, query: bytes, limit });
    return { numbers: rows.map(({ vector_no }) => vector_no), scores: rows.map(({ score }) => score) };
  }

  async #load(tenant_id: string, loaded: Loaded): Promise<void> {
    const isSole = loaded.users === 1;
    if (isSole && loaded.initial !== undefined && loaded.count > Math.max(MIN_RELOAD, loaded.initial * MAX_GROWTH)) {
      await this.#worker.call("drop", [tenant_id]);
      Object.assign(loaded, { last_no: 0, count: 0, initial: undefined });
    }
    const last = await lastVectorNo(this.#database, tenant_id);
    while (loaded.last_no < last) {
      const rows = await listVectors(this.#database.search, tenant_id, {
        after: loaded.last_no,
        last,
        limit: VECTORS_PER_QUERY,
      });
      if (rows.length > 0)
        await this.#worker.call("add", [
          tenant_id,
          {
            dims: this.#dims,
            numbers: rows.map(({ vector_no }) => vector_no),
            namespaces: rows.map(({ namespace }) => namespace),
            vectors: rows.map(({ vector }) => vector),
          },
        ]);
      loaded.last_no = rows.length < VECTORS_PER_QUERY ? last : (rows.at(-1)?.vector_no ?? last);
      loaded.count += rows.length;
    }
    loaded.initial ??= loaded.count;
  }

  async #evict(): Promise<void> {
    let bytes = 0;
    for (const [tenant_id, { count, users }] of [...this.#loaded].reverse()) {
      bytes += Math.max(count * this.#dims * 4, MIN_WORKSPACE_BYTES);
      if (bytes <= MAX_MEMORY_BYTES || users > 0) continue;
      await this.#drop(tenant_id);
    }
  }

  async #drop(tenant_id: string): Promise<void> {
    this.#loaded.delete(tenant_id);
    await this.#worker.call("drop", [tenant_id]);
  }
}
