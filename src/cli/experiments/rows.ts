import { UploadRow } from "../../experiments/contract/upload.ts";
import { idOfName } from "../../platform/lib/ids.ts";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import { isoOfMicroseconds, microsecondsOf } from "../../platform/lib/times.ts";
import { CommandError } from "../command.ts";
import type { InputFile } from "./input-file.ts";

export interface ReadOptions {
  /** ID of the dataset, or its name if no ID is set. */
  dataset?: string;
  /** `provider` and `prompt` select one of several experiments in a promptfoo file. */
  provider?: string;
  prompt?: string;
}

/** Reads a file of one format. The rows are not kept in memory: they are read from the file while they are iterated. */
export type ReadFormat = (file: InputFile, options: ReadOptions) => Results | Promise<Results>;

/** @throws CommandError when no dataset is set */
export function requireDataset({ dataset }: ReadOptions): string {
  if (dataset !== undefined) return dataset;
  throw new CommandError(
    "No dataset specified: pass --dataset NAME or --dataset-id ID. Experiments are compared within a dataset.",
  );
}

/** A row of the upload as JSON text, and its position in the file. */
export interface ReadRow {
  text: string;
  /** Line number, from 1, or index in a list, from 0; see {@link PositionUnit}. */
  position: number;
}

export type PositionUnit = "line" | "element";

export interface Results {
  /** Can be iterated once. */
  rows: AsyncIterable<ReadRow>;
  unit: PositionUnit;
  /** Fields of the experiment as a whole; complete after all rows have been read. */
  head(): JsonObject;
  /** Fields of rows that the service does not store; complete after all rows have been read. */
  unknown(): ReadonlySet<string>;
}

/** The namespace of generated example IDs. It must never change: equal content must have equal IDs across uploads. */
const NAMESPACE = "6f0c2d4e-6d1b-5c8a-9d0e-2b7f3f1a8c55";

/** Larger values are rejected: they are probably mistakes, such as timestamps. */
const MAX_LATENCY_S = 1e9;

const KNOWN = new Set([...Object.keys(UploadRow.shape), "latency"]);

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
  readonly #file: InputFile;
  readonly #unit: PositionUnit;
  readonly #namespace: string;
  readonly #now_us = Date.now() * 1000;
  #first_us = Number.POSITIVE_INFINITY;
  #last_us = Number.NEGATIVE_INFINITY;
  /** Maps an ID derived from inputs to the ID derived from these inputs and the first expected outputs that occurred with them. */
  readonly #ids = new Map<string, string>();
  readonly #unknown = new Set<string>();

  constructor(file: InputFile, unit: PositionUnit, dataset: string) {
    this.#file = file;
    this.#unit = unit;
    this.#namespace = idOfName(dataset, NAMESPACE);
  }

  /** @throws CommandError for a row that is not an object or has an invalid latency */
  complete(given: unknown, position: number): ReadRow {
    if (!isObject(given)) throw this.#file.error(`${this.#unit} ${position}`, "a row must be an object.");
    for (const name of Object.keys(given)) if (!KNOWN.has(name)) this.#unknown.add(name);
    const { latency, ...row } = given;
    row.row_id ??= this.#idOf(row);
    this.#setTimes(row, this.#microseconds(latency, position));
    return { text: JSON.stringify(row), position };
  }

  /** @param head fields of the experiment except its start and end time, which come from the rows */
  results(rows: AsyncIterable<ReadRow>, head: JsonObject): Results {
    return {
      rows: this.#requireRows(rows),
      unit: this.#unit,
      head: () => ({ ...head, ...this.#times() }),
      unknown: () => this.#unknown,
    };
  }

  /** Yields the rows. Throws an error if there are none, because the file is then most likely the wrong one. */
  async *#requireRows(rows: AsyncIterable<ReadRow>): AsyncGenerator<ReadRow> {
    let isEmpty = true;
    for await (const row of rows) {
      isEmpty = false;
      yield row;
    }
    if (isEmpty) throw this.#file.error("", "the file contains no rows to upload.");
  }

  #times(): JsonObject {
    const hasRows = this.#first_us <= this.#last_us;
    return {
      experiment_start_time: isoOfMicroseconds(hasRows ? this.#first_us : this.#now_us),
      experiment_end_time: isoOfMicroseconds(hasRows ? this.#last_us : this.#now_us),
    };
  }

  #idOf({ inputs = null, expected_outputs = null }: JsonObject): string {
    const content = canonical(inputs);
    const id = idOfName(content, this.#namespace);
    const withExpected = idOfName(`[${content},${canonical(expected_outputs)}]`, this.#namespace);
    const first = this.#ids.get(id);
    if (first === undefined) this.#ids.set(id, withExpected);
    return first === undefined || first === withExpected ? id : withExpected;
  }

  #setTimes(row: JsonObject, latency_us: number): void {
    const given = { start: timeOf(row.start_time), end: timeOf(row.end_time) };
    // Invalid times are sent unchanged, because the service rejects them with an error.
    if (Number.isNaN(given.start) || Number.isNaN(given.end)) return;
    const start_us = given.start ?? (given.end ?? this.#now_us + latency_us) - latency_us;
    const end_us = given.end ?? start_us + latency_us;
    row.start_time ??= isoOfMicroseconds(start_us);
    row.end_time ??= isoOfMicroseconds(end_us);
    this.#first_us = Math.min(this.#first_us, start_us);
    this.#last_us = Math.max(this.#last_us, start_us, end_us);
  }

  #microseconds(latency: unknown, position: number): number {
    if (latency === undefined || latency === null) return 0;
    if (typeof latency === "number" && latency >= 0 && latency < MAX_LATENCY_S) return Math.round(latency * 1e6);
    const problem = `latency must be a number of seconds (0 or more), not ${JSON.stringify(latency)}.`;
    throw this.#file.error(`${this.#unit} ${position}`, problem);
  }
}

/** Returns microseconds since the epoch; undefined for a missing time, NaN for an invalid time. */
function timeOf(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  return (typeof value === "string" ? microsecondsOf(value) : undefined) ?? Number.NaN;
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
