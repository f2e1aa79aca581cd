import { serveRpc } from "../../platform/lib/worker-rpc.ts";
import { MEMORY_VECTORS, PackedVectors } from "./packed-vectors.ts";

interface Index {
  size: number;
  numbers: number[];
  /** Index into `namespaces`, by vector. */
  namespace_of: number[];
  namespaces: Map<string, number>;
  memories: PackedVectors[];
}

const newIndex = (): Index => ({ size: 0, numbers: [], namespace_of: [], namespaces: new Map(), memories: [] });

const indexes = new Map<string, Index>();

export interface VectorBatch {
  dims: number;
  numbers: readonly number[];
  namespaces: readonly string[];
  vectors: readonly Uint8Array[];
}

/** Vector numbers and their cosine similarity to the query, the most similar first. */
export interface Nearest {
  numbers: number[];
  scores: number[];
}

const operations = {
  add(tenant_id: string, { dims, numbers, namespaces, vectors }: VectorBatch): void {
    const index = indexes.get(tenant_id) ?? newIndex();
    indexes.set(tenant_id, index);
    for (const [n, vector] of vectors.entries()) {
      // The vector was computed by another model, before `dims` was changed.
      if (vector.byteLength !== dims * 4) continue;
      const namespace = namespaces[n] as string;
      if (!index.namespaces.has(namespace)) index.namespaces.set(namespace, index.namespaces.size);
      const memory = Math.floor(index.size / MEMORY_VECTORS);
      index.memories[memory] ??= new PackedVectors(dims);
      index.memories[memory].add(vector);
      index.numbers.push(numbers[n] as number);
      index.namespace_of.push(index.namespaces.get(namespace) as number);
      index.size++;
    }
  },

  /** Returns the `limit` most similar vectors in namespaces that start with `prefix`. */
  search(tenant_id: string, prefix: string, query: Float32Array, limit: number): Nearest {
    const index = indexes.get(tenant_id);
    if (!index) return { numbers: [], scores: [] };
    const isBelow = [...index.namespaces.keys()].map((namespace) => namespace.startsWith(prefix));
    let found: { position: number; score: number }[] = [];
    let minimum = Number.NEGATIVE_INFINITY;
    const cut = () => {
      found = found.sort((a, b) => b.score - a.score).slice(0, limit);
      if (found.length === limit) minimum = found.at(-1)?.score ?? minimum;
    };
    for (const memory of index.memories) memory.setQuery(query);
    for (let position = 0; position < index.size; position++) {
      if (!isBelow[index.namespace_of[position] as number]) continue;
      const memory = index.memories[Math.floor(position / MEMORY_VECTORS)] as PackedVectors;
      const score = memory.dotProduct(position % MEMORY_VECTORS);
      if (score <= minimum) continue;
      found.push({ position, score });
      if (found.length >= 2 * limit) cut();
    }
    cut();
    return {
      numbers: found.map(({ position }) => index.numbers[position] as number),
      scores: found.map(({ score }) => score),
    };
  },

  drop(tenant_id: string): void {
    indexes.delete(tenant_id);
  },
};
export type VectorOperations = typeof operations;

serveRpc(operations);
