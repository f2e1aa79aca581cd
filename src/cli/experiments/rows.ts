import { UploadRow } from "../../experiments/contract/upload.ts";
import { idOfName } from "../../platform/lib/ids.ts";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import { isoOfMicroseconds, microsecondsOf } from "../../platform/lib/times.ts";
import type { InputFile } from "./input-file.ts";

/** A row as it is sent: JSON text. `place` says where it came from: a line, from 1, or an element of a list, from 0. */
export interface ReadRow {
  text: string;
  place: number;
}

/** What {@link ReadRow.place} counts. */
export type PlaceUnit = "line" | "element";

/** What a file holds: the results of one experiment. */
export interface Results {
  /** Can be gone through once. */
  rows: AsyncIterable<ReadRow>;
  unit: PlaceUnit;
  /** What the file says of the experiment as a whole; to be asked for after its rows. */
  head(): JsonObject;
  /** Fields of rows that mean nothing here, and so are lost; after the rows, too. */
  unknown(): ReadonlySet<string>;
}

/** Ids of examples that were not given one are made of this and their content, the same everywhere and always. */
const NAMESPACE = "6f0c2d4e-6d1b-5c8a-9d0e-2b7f3f1a8c55";

/** Seconds; more is a mistake, such as a time of day. */
const MAX_LATENCY = 1e9;

const KNOWN = new Set([...Object.keys(UploadRow.shape), "latency"]);

/**
 * Gives rows what the service needs and files often do not have.
 *
 * - `row_id`: the UUID (version 5) of the dataset, its id or else its name, and of the inputs with their keys in order. So the
 *   same inputs are the same example in each upload. Where one file has them with several expected outputs, these are
 *   examples of their own.
 * - `start_time` and `end_time`: a row without times starts now, which is when the upload begins, and ends after its `latency`
 *   (seconds; 0 when it is unknown). One that has only a start ends after its latency; one that has only an end started its
 *   latency before that.
 *
 * `latency` itself is not sent.
 */
export class RowCompleter {
  readonly #file: InputFile;
  readonly #unit: PlaceUnit;
  readonly #namespace: string;
  readonly #now_us = Date.now() * 1000;
  #first_us = Number.POSITIVE_INFINITY;
  #last_us = Number.NEGATIVE_INFINITY;
  /** By id of the inputs alone: the id with the expected outputs that came first. */
  readonly #ids = new Map<string, string>();
  readonly #unknown = new Set<string>();

  constructor(file: InputFile, unit: PlaceUnit, dataset: string) {
    this.#file = file;
    this.#unit = unit;
    this.#namespace = idOfName(dataset, NAMESPACE);
  }

  /** @throws CommandError for what is no object, and for a latency that is none */
  complete(given: unknown, place: number): ReadRow {
    if (!isObject(given)) throw this.#file.wrong(`${this.#unit} ${place}`, "must be an object: a row has fields.");
    for (const name of Object.keys(given)) if (!KNOWN.has(name)) this.#unknown.add(name);
    const { latency, ...row } = given;
    row.row_id ??= this.#idOf(row);
    this.#setTimes(row, this.#microseconds(latency, place));
    return { text: JSON.stringify(row), place };
  }

  /** What a file of such rows holds. `head` is what is known of the experiment besides its time. */
  results(rows: AsyncIterable<ReadRow>, head: JsonObject): Results {
    return {
      rows: this.#some(rows),
      unit: this.#unit,
      head: () => ({ ...head, ...this.#window() }),
      unknown: () => this.#unknown,
    };
  }

  /** No rows at all are most likely the wrong file. */
  async *#some(rows: AsyncIterable<ReadRow>): AsyncGenerator<ReadRow> {
    let isEmpty = true;
    for await (const row of rows) {
      isEmpty = false;
      yield row;
    }
    if (isEmpty) throw this.#file.wrong("", "holds no rows, so there is nothing to upload.");
  }

  /** The time of the experiment: it covers all rows so far. */
  #window(): JsonObject {
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
    // A time that cannot be read stays, and the service says what is wrong with it.
    if (Number.isNaN(given.start) || Number.isNaN(given.end)) return;
    const start_us = given.start ?? (given.end ?? this.#now_us + latency_us) - latency_us;
    const end_us = given.end ?? start_us + latency_us;
    row.start_time ??= isoOfMicroseconds(start_us);
    row.end_time ??= isoOfMicroseconds(end_us);
    this.#first_us = Math.min(this.#first_us, start_us);
    this.#last_us = Math.max(this.#last_us, start_us, end_us);
  }

  #microseconds(latency: unknown, place: number): number {
    if (latency === undefined || latency === null) return 0;
    if (typeof latency === "number" && latency >= 0 && latency < MAX_LATENCY) return Math.round(latency * 1e6);
    const problem = `the latency is ${JSON.stringify(latency)}, but must be a number of seconds, 0 or more.`;
    throw this.#file.wrong(`${this.#unit} ${place}`, problem);
  }
}

/** Microseconds since the epoch; undefined for no time, and NaN for something else. */
function timeOf(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  return (typeof value === "string" ? microsecondsOf(value) : undefined) ?? Number.NaN;
}

/** JSON with the keys of all objects in order: the same for the same content. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
  return `{${members.join(",")}}`;
}
