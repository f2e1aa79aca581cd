/** A buffer that doubles when it is full, so that appending n bytes in parts of any size copies at most 3n bytes. */
export class GrowingBytes {
  #bytes = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get capacity(): number {
    return this.#bytes.length;
  }

  /** Copies `part`, because its owner may overwrite it later. */
  append(part: Uint8Array): void {
    const length = this.#length + part.length;
    if (length > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.#bytes.length));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    this.#bytes.set(part, this.#length);
    this.#length = length;
  }

  /** Returns the bytes as text, with U+FFFD for invalid UTF-8, and empties the buffer. The capacity is kept. */
  takeText(): string {
    const text = this.#bytes.toString("utf8", 0, this.#length);
    this.#length = 0;
    return text;
  }
}
