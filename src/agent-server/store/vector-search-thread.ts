import { serveRpc } from "../../platform/lib/worker-rpc.ts";

/** Vectors per buffer. An index grows by whole buffers, so that no vectors are copied. */
const BUFFER_VECTORS = 4_096;

interface Index {
  dims: number;
  size: number;
  numbers: number[];
  /** Index into `namespaces`, by vector. */
  namespace_of: number[];
  namespaces: Map<string, number>;
  buffers: Float32Array[];
}

const newIndex = (dims: number): Index => ({
  ...{ dims, size: 0, numbers: [], namespace_of: [], namespaces: new Map(), buffers: [] },
});

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
    const index = indexes.get(tenant_id) ?? newIndex(dims);
    indexes.set(tenant_id, index);
    for (const [n, vector] of vectors.entries()) {
      // The vector was computed by another model, before `dims` was changed.
      if (vector.byteLength !== dims * 4) continue;
      const namespace = namespaces[n] as string;
      if (!index.namespaces.has(namespace)) index.namespaces.set(namespace, index.namespaces.size);
      const slot = index.size % BUFFER_VECTORS;
      if (slot === 0) index.buffers.push(new Float32Array(BUFFER_VECTORS * dims));
      // The bytes of a database row may not be aligned.
      index.buffers.at(-1)?.set(new Float32Array(Uint8Array.from(vector).buffer), slot * dims);
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
    for (let position = 0; position < index.size; position++) {
      if (!isBelow[index.namespace_of[position] as number]) continue;
      const buffer = index.buffers[Math.floor(position / BUFFER_VECTORS)] as Float32Array;
      const score = dotProduct(buffer, (position % BUFFER_VECTORS) * index.dims, query);
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

/** Uses four sums, because additions to a single sum cannot run in parallel. Takes 1 ns per dimension. */
function dotProduct(vectors: Float32Array, start: number, query: Float32Array): number {
  const { length } = query;
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  let i = 0;
  let at = start;
  for (; i + 3 < length; i += 4, at += 4) {
    a += (vectors[at] as number) * (query[i] as number);
    b += (vectors[at + 1] as number) * (query[i + 1] as number);
    c += (vectors[at + 2] as number) * (query[i + 2] as number);
    d += (vectors[at + 3] as number) * (query[i + 3] as number);
  }
  for (; i < length; i++, at++) a += (vectors[at] as number) * (query[i] as number);
  return a + b + c + d;
}

serveRpc(operations);
