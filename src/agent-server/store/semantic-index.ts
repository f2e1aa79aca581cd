import type { Database } from "../../platform/database/database.ts";
import { byIds } from "../../platform/database/insert-many.ts";
import { ApiError, ConfigError } from "../../platform/errors.ts";
import { INVALID_PATH, type ItemPut, TEXT_PATH } from "../contract/store.ts";
import type { EmbedQuery } from "../graph-hosts/host-store.ts";
import { queryFailure } from "../graph-hosts/query-host.ts";
import type { StoreItemRow } from "../storage/schema.ts";
import { type ItemFilter, itemId } from "../storage/store/items.ts";
import { findItemsOfVectors } from "../storage/store/vectors.ts";
import { VectorSearch } from "./vector-search.ts";

/** Calls the embedding function of the project in a graph host. */
export type Embed = (query: EmbedQuery) => Promise<Float32Array>;

export type ScoredRow = StoreItemRow & { score?: number };

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
        `langgraph.json: store.index.fields contains the invalid path "${wrong}": each path ${INVALID_PATH}.`,
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
          reason: `body.index: the paths match ${length} texts in the value; the limit is ${MAX_TEXTS}`,
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
        const rows = await this.#rowsOf(filter, numbers, scores);
        if (rows.length >= wanted || numbers.length < checked) return rows.slice(offset, wanted);
      }
    });
  }

  stop(): Promise<void> {
    return this.#vectors.stop();
  }

  /** Returns the matching items of vectors, each with its best score. */
  async #rowsOf(filter: ItemFilter, numbers: readonly number[], scores: readonly number[]): Promise<ScoredRow[]> {
    const rows = await byIds(numbers, (batch) => findItemsOfVectors(this.#database.search, filter, batch));
    const by_number = new Map(rows.map(({ vector_no, ...row }) => [vector_no, row]));
    const found = new Map<string, ScoredRow>();
    for (const [n, number] of numbers.entries()) {
      const row = by_number.get(number);
      if (!row) continue;
      const key = itemId(row);
      if (!found.has(key)) found.set(key, { ...row, score: scores[n] as number });
    }
    return [...found.values()];
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
