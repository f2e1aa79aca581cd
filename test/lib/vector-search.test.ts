import { readFileSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import initWabt from "wabt";
import { MEMORY_VECTORS, MODULE, PackedVectors } from "../../src/agent-server/store/packed-vectors.ts";
import type { VectorOperations } from "../../src/agent-server/store/vector-search-thread.ts";
import { WorkerRpc } from "../../src/platform/lib/worker-rpc.ts";

function randomVector(dims: number): Float32Array {
  const numbers = Array.from({ length: dims }, () => Math.random() - 0.5);
  const length = Math.hypot(...numbers);
  return Float32Array.from(numbers, (number) => number / length);
}

const dotProduct = (a: Float32Array, b: Float32Array) =>
  a.reduce((sum, number, i) => sum + number * (b[i] as number), 0);
const bytesOf = (vector: Float32Array) => new Uint8Array(vector.buffer);

describe("packed vectors", () => {
  it.each([1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 100, 384, 385, 1_537, 8_191, 8_192])(
    "of %i dimensions have the dot products that JavaScript computes",
    (dims) => {
      // More than fit in the first page, and with 8,191 dimensions more than after the first growth.
      const vectors = Array.from({ length: Math.max(150, Math.ceil(20_000 / dims)) }, () => randomVector(dims));
      const packed = new PackedVectors(dims);
      const differs = (n: number, query: Float32Array) =>
        !(Math.abs(packed.dotProduct(n) - dotProduct(vectors[n] as Float32Array, query)) < 1e-6);
      const first = vectors[0] as Float32Array;
      packed.setQuery(first);
      for (const [n, vector] of vectors.entries()) {
        packed.add(bytesOf(vector));
        // Immediately, while the memory ends closest to the vector.
        if (differs(n, first)) expect.fail(`vector ${n}: ${packed.dotProduct(n)}`);
      }
      const last = vectors.at(-1) as Float32Array;
      packed.setQuery(last);
      expect(vectors.filter((_, n) => differs(n, last))).toEqual([]);
    },
  );

  it("use the module that is compiled from packed-vectors.wat", async () => {
    const file = new URL("../../src/agent-server/store/packed-vectors.wat", import.meta.url);
    const wat = (await initWabt()).parseWat(file.pathname, readFileSync(file, "utf8"), { simd: true });
    expect(MODULE).toBe(Buffer.from(wat.toBinary({}).buffer).toString("base64"));
  });
});

describe("the vector search thread", () => {
  const worker = new WorkerRpc<VectorOperations>({
    entry: new URL("../../src/agent-server/store/vector-search-thread", import.meta.url),
    name: "test",
  });
  afterAll(() => worker.terminate());

  it("finds the nearest vectors of two memories, and of equally near ones the first", async () => {
    const dims = 5;
    // Small integers: the sums are exact in any order, and many are equal.
    const randomInteger = () => Math.floor(Math.random() * 17) - 8;
    const vectors = Array.from({ length: MEMORY_VECTORS + 1_000 }, () =>
      Float32Array.from({ length: dims }, randomInteger),
    );
    const query = Float32Array.from({ length: dims }, randomInteger);
    // Equally near ones at the end of the first memory and at the start of the second one, nearer than all others.
    for (const n of [-1, 0, 1]) vectors[MEMORY_VECTORS + n] = query.map((number) => number * 100);
    const namespaces = vectors.map((_, n) => (n % 3 === 0 ? "a.b." : "ab."));
    const numbers = vectors.map((_, n) => n * 2);
    await worker.call("add", ["w", { dims, numbers, namespaces, vectors: vectors.map(bytesOf) }]);
    for (const prefix of ["", "a.", "ab.", "c."]) {
      const expected = vectors
        .map((vector, n) => ({ number: n * 2, score: dotProduct(vector, query), namespace: namespaces[n] as string }))
        .filter(({ namespace }) => namespace.startsWith(prefix))
        .sort((a, b) => b.score - a.score)
        .slice(0, 50);
      expect(await worker.call("search", ["w", prefix, query, 50])).toEqual({
        numbers: expected.map(({ number }) => number),
        scores: expected.map(({ score }) => score),
      });
    }
    await worker.call("drop", ["w"]);
    expect(await worker.call("search", ["w", "", query, 50])).toEqual({ numbers: [], scores: [] });
  });
});
