const NEWLINE = 0x0a;

/** A line that goes on longer than this is told in pieces. */
const MAX_BYTES = 64 * 1024;

/** Cuts a stream of bytes into lines, also where a character lies over the border of two pieces. */
export class LineSplitter {
  #rest: Buffer = Buffer.alloc(0);

  /** Bytes that belong to a line whose end has not come. */
  get pending(): number {
    return this.#rest.length;
  }

  /** The lines that end in this piece. */
  add(piece: Uint8Array): string[] {
    let bytes = Buffer.concat([this.#rest, piece]);
    const lines: string[] = [];
    for (;;) {
      const newline = bytes.indexOf(NEWLINE);
      const end = newline === -1 ? (bytes.length > MAX_BYTES ? MAX_BYTES : -1) : newline;
      if (end === -1) break;
      lines.push(bytes.toString("utf8", 0, end));
      bytes = bytes.subarray(newline === -1 ? end : end + 1);
    }
    this.#rest = Buffer.from(bytes);
    return lines;
  }

  /** What is left, when nothing more comes. */
  end(): string[] {
    const rest = this.#rest.toString("utf8");
    this.#rest = Buffer.alloc(0);
    return rest === "" ? [] : [rest];
  }
}
