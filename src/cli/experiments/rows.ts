import { microsecondsOf } from "../../contract/experiments/fields.ts";
import { UploadRow } from "../../contract/experiments/upload.ts";
import { idOfName } from "../../lib/ids.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { isoOfMicroseconds } from "../../lib/times.ts";
import { CommandError } from "./command-error.ts";

/** A row as it is sent: JSON text. `at` says where it came from, counted in what {@link Results.unit} says. */
export interface ReadRow {
  text: string;
  at: number;
}

/** What a file holds: the results of one experiment. */
export interface Results {
  /** Can be gone through once. */
  rows: AsyncIterable<ReadRow>;
  /** `line` counts from 1 and `result` (of a list in the file) from 0. Without a unit a row's index says it all. */
  unit?: "line" | "result";
  /** What the file says of the experiment as a whole; to be asked for after its rows. */
  head(): JsonObject;
  /** Fields of rows that mean nothing here, and so are lost; after the rows, too. */
  unknown?: ReadonlySet<string>;
}

/** Ids of examples that were not given one are made of this and their content, the same everywhere and always. */
const NAMESPACE = "6f0c2d4e-6d1b-5c8a-9d0e-2b7f3f1a8c55";

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
  readonly #namespace: string;
  readonly #now_us = Date.now() * 1000;
  #first_us = Number.POSITIVE_INFINITY;
  #last_us = Number.NEGATIVE_INFINITY;
  /** By id of the inputs alone: the id with the expected outputs that came first. */
  readonly #ids = new Map<string, string>();
  readonly unknown = new Set<string>();

  constructor(dataset: string) {
    this.#namespace = idOfName(dataset, NAMESPACE);
  }

  /** @throws CommandError for a latency that is none */
  complete(given: JsonObject): string {
    for (const name of Object.keys(given)) if (!KNOWN.has(name)) this.unknown.add(name);
    const { latency, ...row } = given;
    row.row_id ??= this.#idOf(row);
    this.#setTimes(row, microseconds(latency));
    return JSON.stringify(row);
  }

  /** The time of the experiment: it covers all rows so far. */
  window(): JsonObject {
    const hasRows = this.#first_us <= this.#last_us;
    return {
      experiment_start_time: isoOfMicroseconds(hasRows ? this.#first_us : this.#now_us),
      experiment_end_time: isoOfMicroseconds(hasRows ? this.#last_us : this.#now_us),
    };
  }

  #idOf({ inputs, expected_outputs }: JsonObject): string {
    const id = idOfName(canonical(inputs ?? null), this.#namespace);
    const withExpected = idOfName(canonical([inputs ?? null, expected_outputs ?? null]), this.#namespace);
    const first = this.#ids.get(id);
    if (first === undefined) this.#ids.set(id, withExpected);
    return first === undefined || first === withExpected ? id : withExpected;
  }

  #setTimes(row: JsonObject, latency_us: number): void {
    if (isGiven(row.start_time)) {
      const start_us = timeOf(row.start_time);
      if (!isGiven(row.end_time) && start_us !== undefined) row.end_time = isoOfMicroseconds(start_us + latency_us);
    } else {
      const end_us = isGiven(row.end_time) ? timeOf(row.end_time) : this.#now_us + latency_us;
      // A time that cannot be read stays, and the service says what is wrong with it.
      if (end_us === undefined) return;
      row.start_time = isoOfMicroseconds(end_us - latency_us);
      row.end_time ??= isoOfMicroseconds(end_us);
    }
    const [start_us, end_us] = [timeOf(row.start_time), timeOf(row.end_time)];
    if (start_us === undefined || end_us === undefined) return;
    this.#first_us = Math.min(this.#first_us, start_us);
    this.#last_us = Math.max(this.#last_us, start_us, end_us);
  }
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null;

const timeOf = (value: unknown): number | undefined => (typeof value === "string" ? microsecondsOf(value) : undefined);

function microseconds(latency: unknown): number {
  if (!isGiven(latency)) return 0;
  if (typeof latency === "number" && latency >= 0 && latency < 1e9) return Math.round(latency * 1e6);
  throw new CommandError(`the latency ${JSON.stringify(latency)} must be a number of seconds, 0 or more.`);
}

/** JSON with the keys of all objects in order: the same for the same content. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    isObject(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  );
}
