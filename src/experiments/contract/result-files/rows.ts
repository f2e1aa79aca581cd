/** Rows of result files, for the command line and for the web app. Imports only types, so that the web app can use it. */

import type { UploadRow } from "../upload.ts";

type JsonObject = Record<string, unknown>;

/** The namespace of generated example IDs. It must never change: equal content must have equal IDs across uploads. */
const NAMESPACE = "6f0c2d4e-6d1b-5c8a-9d0e-2b7f3f1a8c55";

/** Larger values are rejected: they are probably mistakes, such as timestamps. */
const MAX_LATENCY_S = 1e9;

const FIELDS: Record<keyof UploadRow, true> = {
  row_id: true,
  inputs: true,
  expected_outputs: true,
  actual_outputs: true,
  evaluation_scores: true,
  start_time: true,
  end_time: true,
  run_name: true,
  error: true,
  run_metadata: true,
};

/** Whether the service stores a field of a row, or derives a stored field from it. */
export const isRowField = (name: string): boolean => Object.hasOwn(FIELDS, name) || name === "latency";

/** What completing rows needs besides the rows. */
export interface RowTools {
  /** Returns the UUID (version 5) of a name in a namespace. */
  idOfName(name: string, namespace: string): string;
  /** Returns a time as microseconds since the epoch. Undefined if the text is not a time. */
  microsecondsOf(text: string): number | undefined;
}

/** Thrown for a row that cannot be completed. */
export class RowError extends Error {}

/**
 * Adds the fields that the service requires and files often omit.
 *
 * - `row_id`: a UUID (version 5) of the dataset (its ID or else its name) and the inputs with sorted keys, so equal inputs are the same
 *   example in each upload. If a file has the same inputs with different expected outputs, each combination is its own example.
 * - `start_time` and `end_time`: a row without times starts when the upload begins and ends after its `latency` (seconds; 0 when
 *   unknown). A missing end is the start plus the latency; a missing start is the end minus the latency.
 *
 * `latency` itself is not sent.
 */
export class RowCompleter {
  readonly #tools: RowTools;
  readonly #namespace: string;
  readonly #now_us = Date.now() * 1000;
  #first_us = Number.POSITIVE_INFINITY;
  #last_us = Number.NEGATIVE_INFINITY;
  /** Maps an ID derived from inputs to the ID derived from these inputs and the first expected outputs that occurred with them. */
  readonly #ids = new Map<string, string>();

  /** @param dataset ID of the dataset, or its name if no ID is set */
  constructor(dataset: string, tools: RowTools) {
    this.#tools = tools;
    this.#namespace = tools.idOfName(dataset, NAMESPACE);
  }

  /** @throws RowError for an invalid latency */
  complete({ latency, ...row }: JsonObject): JsonObject {
    row.row_id ??= this.#idOf(row);
    this.#setTimes(row, microsecondsOfLatency(latency));
    return row;
  }

  /** Returns the start and the end of the experiment: those of its rows so far. */
  times(): JsonObject {
    const hasRows = this.#first_us <= this.#last_us;
    return {
      experiment_start_time: isoOf(hasRows ? this.#first_us : this.#now_us),
      experiment_end_time: isoOf(hasRows ? this.#last_us : this.#now_us),
    };
  }

  #idOf({ inputs = null, expected_outputs = null }: JsonObject): string {
    const content = canonical(inputs);
    const id = this.#tools.idOfName(content, this.#namespace);
    const withExpected = this.#tools.idOfName(`[${content},${canonical(expected_outputs)}]`, this.#namespace);
    const first = this.#ids.get(id);
    if (first === undefined) this.#ids.set(id, withExpected);
    return first === undefined || first === withExpected ? id : withExpected;
  }

  #setTimes(row: JsonObject, latency_us: number): void {
    const given = { start: this.#timeOf(row.start_time), end: this.#timeOf(row.end_time) };
    // Invalid times are sent unchanged, because the service rejects them with an error.
    if (Number.isNaN(given.start) || Number.isNaN(given.end)) return;
    const start_us = given.start ?? (given.end ?? this.#now_us + latency_us) - latency_us;
    const end_us = given.end ?? start_us + latency_us;
    row.start_time ??= isoOf(start_us);
    row.end_time ??= isoOf(end_us);
    this.#first_us = Math.min(this.#first_us, start_us);
    this.#last_us = Math.max(this.#last_us, start_us, end_us);
  }

  /** Returns microseconds since the epoch; undefined for a missing time, NaN for an invalid time. */
  #timeOf(value: unknown): number | undefined {
    if (value === undefined || value === null) return undefined;
    return (typeof value === "string" ? this.#tools.microsecondsOf(value) : undefined) ?? Number.NaN;
  }
}

function microsecondsOfLatency(latency: unknown): number {
  if (latency === undefined || latency === null) return 0;
  if (typeof latency === "number" && latency >= 0 && latency < MAX_LATENCY_S) return Math.round(latency * 1e6);
  throw new RowError(
    `latency (in seconds) must be a number that is at least 0 and less than 1,000,000,000, but is ${JSON.stringify(latency)}.`,
  );
}

/** Formats microseconds since the epoch in ISO 8601. */
function isoOf(us: number): string {
  const ms = Math.floor(us / 1000);
  const micros = String(us - ms * 1000).padStart(3, "0");
  return new Date(ms).toISOString().replace("Z", `${micros === "000" ? "" : micros}+00:00`);
}

/** Returns the value as JSON with sorted keys, so that equal values have equal texts. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
  return `{${members.join(",")}}`;
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
