const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;

/**
 * Finds the end of a JSON value in UTF-8 bytes that arrive in chunks. It tracks strings, escapes and depth only, so the end of an invalid
 * value is arbitrary; a parser must check the value. Bytes of non-ASCII characters are above 0x7f, so a chunk may end within a character.
 */
export class JsonValueScanner {
  #kind: "fresh" | "scalar" | "string" | "nested" = "fresh";
  #depth = 0;
  /** Within an array or object: the previous chunk ended inside a string. */
  #inString = false;
  /** The previous chunk ended with a backslash, so the next byte is escaped. */
  #isEscaped = false;

  /**
   * @param from index of the first byte of a value or, within a value, of the next chunk
   * @returns the index after the last byte of the value; -1 if the value continues in the next chunk
   */
  scan(bytes: Uint8Array, from: number): number {
    if (this.#kind === "fresh") {
      const first = bytes[from] as number;
      this.#kind = first === QUOTE ? "string" : isOpening(first) ? "nested" : "scalar";
      this.#depth = 0;
      if (this.#kind === "string") from++;
    }
    const end = this.#endOf(bytes, from);
    if (end !== -1) this.#kind = "fresh";
    return end;
  }

  #endOf(bytes: Uint8Array, from: number): number {
    if (this.#kind === "scalar") return scalarEnd(bytes, from);
    return this.#kind === "string" ? this.#stringEnd(bytes, from) : this.#nestedEnd(bytes, from);
  }

  #nestedEnd(bytes: Uint8Array, from: number): number {
    let at = from;
    if (this.#inString) {
      at = this.#stringEnd(bytes, at);
      if (at === -1) return -1;
      this.#inString = false;
    }
    let depth = this.#depth;
    for (; at < bytes.length; at++) {
      const byte = bytes[at] as number;
      if (byte === QUOTE) {
        const end = this.#stringEnd(bytes, at + 1);
        if (end === -1) {
          this.#inString = true;
          break;
        }
        at = end - 1;
      } else if (isOpening(byte)) depth++;
      else if (isClosing(byte) && --depth === 0) return at + 1;
    }
    this.#depth = depth;
    return -1;
  }

  /** Returns the index after the closing quote; -1 if the string continues in the next chunk. */
  #stringEnd(bytes: Uint8Array, from: number): number {
    let at = this.#isEscaped ? from + 1 : from;
    this.#isEscaped = false;
    for (; at < bytes.length; at++) {
      const byte = bytes[at];
      if (byte === QUOTE) return at + 1;
      if (byte === BACKSLASH) at++;
    }
    this.#isEscaped = at > bytes.length;
    return -1;
  }
}

/** Returns the index of the first byte that can follow a scalar; -1 if the scalar may continue in the next chunk. */
function scalarEnd(bytes: Uint8Array, from: number): number {
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (isSpace(byte) || byte === COMMA || isClosing(byte)) return at;
  }
  return -1;
}

/** Whether the byte is white space in JSON. */
export const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

// [ and { differ in bit 0x20 only, as do ] and }, so one comparison per byte is enough.
const isOpening = (byte: number): boolean => (byte | 0x20) === 0x7b;
const isClosing = (byte: number): boolean => (byte | 0x20) === 0x7d;

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
