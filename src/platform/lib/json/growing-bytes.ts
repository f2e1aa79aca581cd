/**
 * Bytes put together from parts. Doubles when it is full, so that a value of n bytes costs at most 3n copied however small
 * its parts are; what it has grown to is kept for the next value.
 */
export class GrowingBytes {
  #bytes = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** How many bytes fit before it must be copied to a place of twice the size. */
  get capacity(): number {
    return this.#bytes.length;
  }

  /** Copies `part`, because its owner may overwrite it afterwards. */
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

  /** Empties it. Returns the text that the bytes were in UTF-8, with U+FFFD for what is not UTF-8. */
  takeText(): string {
    const text = this.#bytes.toString("utf8", 0, this.#length);
    this.#length = 0;
    return text;
  }
}
