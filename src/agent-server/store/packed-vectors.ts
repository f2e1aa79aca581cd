/** Vectors per memory: 2 GiB with 8,192 dimensions. Addresses have 32 bits. */
export const MEMORY_VECTORS = 65_536;

/** The module packed-vectors.wat. If it changes, the unit test prints the new text. */
export const MODULE =
  "AGFzbQEAAAABBwFgAn9/AX0DAgEABQMBAAEHFwIGbWVtb3J5AgAKZG90UHJvZHVjdAAACmwBagICfwJ7A0AgACACaiEDIAQgAv0ABAAgA/0ABAD95gH9" +
  "5AEhBCAFIAL9AAQQIAP9AAQQ/eYB/eQBIQUgAkEgaiECIAIgAUkNAAsgBCAF/eQBIQQgBP0fACAE/R8BkiAE/R8CIAT9HwOSkgs=";

interface Exports {
  memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  dotProduct(vector: number, length: number): number;
}

// @types/node does not declare it.
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object) => { exports: unknown };
};

const module = new WebAssembly.Module(Buffer.from(MODULE, "base64"));

/** Bytes that the loop of `dotProduct` reads at a time. */
const STEP = 32;
/**
 * 4 MiB. A growth takes 0.1 ms whatever its size: 250 ms in total for 100,000 vectors of 384 dimensions by single pages. Pages take no
 * physical memory until they are written.
 */
const GROWTH_PAGES = 64;

/** Up to {@link MEMORY_VECTORS} vectors in a memory of WebAssembly, which grows in place: Node reserves 8 GiB of addresses for each. */
export class PackedVectors {
  readonly #wasm = new WebAssembly.Instance(module).exports as Exports;
  readonly #vector_length: number;
  readonly #query_length: number;
  #bytes = new Uint8Array(this.#wasm.memory.buffer);
  #size = 0;

  constructor(dims: number) {
    this.#vector_length = dims * 4;
    this.#query_length = Math.ceil(this.#vector_length / STEP) * STEP;
  }

  /** @param vector its numbers in the format of the database: 32-bit floating point, little-endian */
  add(vector: Uint8Array): void {
    const at = this.#addressOf(this.#size);
    // The last step reads beyond the vector.
    if (at + this.#query_length > this.#bytes.length) {
      this.#wasm.memory.grow(GROWTH_PAGES);
      this.#bytes = new Uint8Array(this.#wasm.memory.buffer);
    }
    this.#bytes.set(vector, at);
    this.#size++;
  }

  /** Sets the other vector of {@link dotProduct}. */
  setQuery(query: Float32Array): void {
    new Float32Array(this.#wasm.memory.buffer).set(query);
  }

  /** Returns the dot product of the query and vector `n`. All numbers must be finite. */
  dotProduct(n: number): number {
    return this.#wasm.dotProduct(this.#addressOf(n), this.#query_length);
  }

  #addressOf(n: number): number {
    return this.#query_length + n * this.#vector_length;
  }
}
