import { hash } from "node:crypto";
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cutPreview } from "../../platform/contract/preview.ts";
import type { FeedbackInput } from "../contract/feedback/feedback.ts";
import type { UploadRow } from "../contract/upload.ts";
import { toJson } from "../serialization/records.ts";

/** A checked row of an upload, with its payloads as JSON. */
export interface StagedRow {
  row_id: string;
  inputs: string;
  expected: string | null;
  outputs: string | null;
  /** The digest of inputs and expected outputs. */
  digest: string;
  inputs_preview: string;
  outputs_preview: string | null;
  name: string;
  start_us: number;
  end_us: number;
  error: string | null;
  metadata: string | null;
  scores: FeedbackInput[];
}

const DEFAULT_RUN_NAME = "run";

export function stagedRow(row: UploadRow): StagedRow {
  return {
    row_id: row.row_id,
    inputs: JSON.stringify(row.inputs),
    expected: toJson(row.expected_outputs),
    outputs: toJson(row.actual_outputs),
    digest: digestOf(row.inputs, row.expected_outputs ?? null),
    inputs_preview: cutPreview(row.inputs, "inputs"),
    outputs_preview: row.actual_outputs ? cutPreview(row.actual_outputs, "outputs") : null,
    name: row.run_name ?? DEFAULT_RUN_NAME,
    start_us: row.start_time,
    end_us: row.end_time,
    error: row.error ?? null,
    metadata: toJson(row.run_metadata),
    scores: row.evaluation_scores ?? [],
  };
}

/** A digest that does not depend on the order of keys. */
export function digestOf(inputs: unknown, outputs: unknown): string {
  return hash("sha1", canonicalJson([inputs, outputs]), "base64");
}

/** JSON that does not depend on the order of keys. */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`).join(",")}}`;
}

const MAX_MEMORY_BYTES = 4 * 2 ** 20;

const PIECE_BYTES = 2 ** 20;

/**
 * Buffers the rows of an upload until it is complete, in memory or, for larger uploads, in a temporary file. The file is unlinked as
 * soon as it is open, so a crashed process leaves no file.
 */
export class Staging {
  #lines: Buffer[] = [];
  #bytes = 0;
  #file: number | undefined;
  count = 0;

  add(row: StagedRow): void {
    const line = Buffer.from(`${JSON.stringify(row)}\n`);
    this.#lines.push(line);
    this.#bytes += line.byteLength;
    this.count++;
    if (this.#bytes >= MAX_MEMORY_BYTES) this.#spill();
  }

  /** All rows in the order of the upload. May be called again when the transaction is retried. */
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
    const data = Buffer.concat(this.#lines);
    // On a full disk, the first call writes a part, and only the next one fails.
    for (let written = 0; written < data.length; ) written += writeSync(this.#file, data, written);
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
    // Windows cannot delete an open file: the system cleans up its temporary folder.
  }
  return file;
}

function* linesOf(file: number): Generator<string> {
  const piece = Buffer.allocUnsafe(PIECE_BYTES);
  let incomplete = Buffer.alloc(0);
  for (let position = 0; ; ) {
    const read = readSync(file, piece, 0, PIECE_BYTES, position);
    if (read === 0) return;
    position += read;
    let text = Buffer.concat([incomplete, piece.subarray(0, read)]);
    for (let end = text.indexOf(10); end >= 0; end = text.indexOf(10)) {
      yield text.toString("utf8", 0, end);
      text = text.subarray(end + 1);
    }
    incomplete = text;
  }
}
