import type { Database } from "../../platform/database/database.ts";
import { WorkerRpc } from "../../platform/lib/worker-rpc.ts";
import {
  countVectors,
  fillEmbeddings,
  findNearest,
  lastVectorNo,
  listVectors,
  prepareEmbeddings,
} from "../storage/store/vectors.ts";
import type { Nearest, VectorOperations } from "./vector-search-thread.ts";

/** Vectors per database query: a page of vectors with 384 dimensions takes 3 MB. */
const PAGE = 2_000;
/** The vectors of the most recently searched workspaces stay in memory, up to this many bytes. */
const MAX_BYTES = 2 ** 30;
/** Each workspace counts as at least this many bytes: it reserves 8 GiB of virtual addresses, of which a process has 128 TiB. */
const MIN_BYTES = 2 ** 20;
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
export class VectorSearch {
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
      const rows = await listVectors(this.#database.search, tenant_id, { after: loaded.last_no, last, limit: PAGE });
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
      loaded.last_no = rows.length < PAGE ? last : (rows.at(-1)?.vector_no ?? last);
      loaded.count += rows.length;
    }
    loaded.initial ??= loaded.count;
  }

  async #evict(): Promise<void> {
    let bytes = 0;
    for (const [tenant_id, { count, users }] of [...this.#loaded].reverse()) {
      bytes += Math.max(count * this.#dims * 4, MIN_BYTES);
      if (bytes <= MAX_BYTES || users > 0) continue;
      await this.#drop(tenant_id);
    }
  }

  async #drop(tenant_id: string): Promise<void> {
    this.#loaded.delete(tenant_id);
    await this.#worker.call("drop", [tenant_id]);
  }
}
