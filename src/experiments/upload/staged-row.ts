import { hash } from "node:crypto";
import type { FeedbackInput } from "../contract/feedback.ts";
import type { UploadRow } from "../contract/upload.ts";

/** A row of an upload that has been checked, with its payloads as the database will keep them. */
export interface StagedRow {
  row_id: string;
  inputs: string;
  expected: string | null;
  outputs: string | null;
  /** Of inputs and expected outputs: two rows with the same digest are about the same example in the same version. */
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

/** What a run is called that was not given a name. */
const DEFAULT_NAME = "run";

/** Characters of a preview: two lines in a table. */
const PREVIEW_CHARS = 200;

export function stagedRow(row: UploadRow): StagedRow {
  const inputs = JSON.stringify(row.inputs);
  const expected = row.expected_outputs === undefined ? null : JSON.stringify(row.expected_outputs);
  const outputs = row.actual_outputs === undefined ? null : JSON.stringify(row.actual_outputs);
  return {
    row_id: row.row_id,
    inputs,
    expected,
    outputs,
    digest: digestOf(row.inputs, row.expected_outputs ?? null),
    inputs_preview: previewOf(row.inputs),
    outputs_preview: row.actual_outputs === undefined ? null : previewOf(row.actual_outputs),
    name: row.run_name ?? DEFAULT_NAME,
    start_us: row.start_time,
    end_us: row.end_time,
    error: row.error ?? null,
    metadata: row.run_metadata === undefined ? null : JSON.stringify(row.run_metadata),
    scores: row.evaluation_scores ?? [],
  };
}

/** The same for the same content, in whatever order the keys of its objects are. */
export function digestOf(inputs: unknown, outputs: unknown): string {
  return hash("sha1", canonical([inputs, outputs]), "base64");
}

function canonical(value: unknown): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`).join(",")}}`;
}

/** The beginning of a payload for a list; of an object with one text in it, that text. */
export function previewOf(payload: Record<string, unknown>): string {
  const values = Object.values(payload);
  const text = values.length === 1 && typeof values[0] === "string" ? values[0] : JSON.stringify(payload);
  return text.length <= PREVIEW_CHARS ? text : `${text.slice(0, PREVIEW_CHARS).toWellFormed()}…`;
}
