import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StagedRow } from "./staged-row.ts";

/** Rows are kept in memory up to this many bytes of text, and from then on in a file: an upload may have 200 MB. */
const MAX_MEMORY_BYTES = 4 * 2 ** 20;

/** The file is read in pieces of this size. */
const PIECE_BYTES = 2 ** 20;

/**
 * Where the rows of an upload wait until the last one has come. Nothing of it is in the database; a process that dies leaves
 * nothing behind, because the file is unlinked as soon as it is open.
 */
export class Staging {
  #lines: Buffer[] = [];
  #bytes = 0;
  #file: number | undefined;
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(row: StagedRow): void {
    const line = Buffer.from(`${JSON.stringify(row)}\n`);
    this.#lines.push(line);
    this.#bytes += line.byteLength;
    this.#count++;
    if (this.#bytes >= MAX_MEMORY_BYTES) this.#spill();
  }

  /** All rows in the order in which they came. May be asked again: a transaction may be repeated. */
  *rows(): Generator<StagedRow> {
    if (this.#file === undefined) {
      for (const line of this.#lines) yield JSON.parse(line.toString());
      return;
    }
    this.#spill();
    for (const line of linesOf(this.#file)) yield JSON.parse(line);
  }

  discard(): void {
    this.#lines = [];
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  #spill(): void {
    this.#file ??= openUnlinked();
    if (this.#lines.length > 0) writeSync(this.#file, Buffer.concat(this.#lines));
    this.#lines = [];
    this.#bytes = 0;
  }
}

function openUnlinked(): number {
  const folder = mkdtempSync(join(tmpdir(), "threadmill-upload-"));
  const file = openSync(join(folder, "rows"), "w+", 0o600);
  try {
    rmSync(folder, { recursive: true });
  } catch {
    // Windows keeps an open file until it is closed; there the system's own clearing of the folder takes it.
  }
  return file;
}

function* linesOf(file: number): Generator<string> {
  const piece = Buffer.allocUnsafe(PIECE_BYTES);
  let rest = Buffer.alloc(0);
  for (let position = 0; ; ) {
    const read = readSync(file, piece, 0, PIECE_BYTES, position);
    if (read === 0) return;
    position += read;
    let text = Buffer.concat([rest, piece.subarray(0, read)]);
    for (let end = text.indexOf(10); end >= 0; end = text.indexOf(10)) {
      yield text.toString("utf8", 0, end);
      text = text.subarray(end + 1);
    }
    rest = text;
  }
}
