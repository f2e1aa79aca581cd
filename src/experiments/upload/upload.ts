import { invalidParts } from "../../platform/contract/invalid-parts.ts";
import { type InvalidPart, InvalidRequestError } from "../../platform/errors.ts";
import { JsonError } from "../../platform/lib/json/json.ts";
import { JsonRows } from "../../platform/lib/json/json-rows.ts";
import { isoOfMicroseconds } from "../../platform/lib/times.ts";
import { UploadHead, UploadRow } from "../contract/upload.ts";
import { type StagedRow, stagedRow } from "./staged-row.ts";
import { Staging } from "./staging.ts";

/** The reasons of as many rows are told; the rest would only be more of the same. */
const MAX_BAD_ROWS = 100;

/** Everything but the rows; metadata is the only large thing in it. */
const MAX_HEAD_BYTES = 16 * 2 ** 20;

/** An upload that is whole and right: ready to be stored. */
export interface CheckedUpload {
  head: UploadHead;
  staging: Staging;
}

interface Times {
  start_us: number;
  end_us: number;
}

/**
 * An upload while it arrives. Each row is checked as soon as its bytes are there, and staged; what concerns the whole (the
 * window of the experiment may come after its rows) is checked at the end.
 */
export class Upload {
  readonly #reader: JsonRows;
  readonly #staging = new Staging();
  readonly #bad: { row: number; parts: InvalidPart[] }[] = [];
  #badRows = 0;
  readonly #times: Times[] = [];
  /** By row_id: what it was about, and where it came first. */
  readonly #examples = new Map<string, { digest: string; row: number }>();

  constructor(limit_bytes: number) {
    this.#reader = new JsonRows({
      array: "results",
      max_row_bytes: limit_bytes,
      max_rest_bytes: MAX_HEAD_BYTES,
      onRow: (row, index) => this.#take(row, index),
    });
  }

  /** @throws InvalidRequestError when this cannot become a JSON document any more */
  push(chunk: Uint8Array): void {
    asInvalid(() => this.#reader.push(chunk));
  }

  /** @throws InvalidRequestError with the reasons of up to 100 rows */
  finish(): CheckedUpload {
    const rest = asInvalid(() => this.#reader.end());
    const head = UploadHead.safeParse(rest, { reportInput: true });
    const parts = head.success ? [] : invalidParts(head.error.issues, rest, ["body"]);
    if (!this.#reader.hasArray) parts.push(noResults(rest.results));
    if (head.success) {
      if (head.data.dataset_id === undefined && head.data.dataset_name === undefined) parts.push(NO_DATASET);
      this.#checkWindow(head.data);
    }
    for (const bad of this.#bad.sort((a, b) => a.row - b.row).slice(0, MAX_BAD_ROWS)) parts.push(...bad.parts);
    if (parts.length > 0) throw new InvalidRequestError(parts);
    return { head: head.data as UploadHead, staging: this.#staging };
  }

  /** Lets go of everything; nothing was stored. */
  discard(): void {
    this.#staging.discard();
  }

  #take(given: unknown, index: number): void {
    const result = UploadRow.safeParse(given, { reportInput: true });
    if (!result.success) {
      this.#times.push({ start_us: Number.NaN, end_us: Number.NaN });
      this.#refuse(index, invalidParts(result.error.issues, given, ["body", "results", index]));
      return;
    }
    const row = stagedRow(result.data);
    // Not the row itself, whose texts would stay: the body would be held in memory after all.
    this.#times.push({ start_us: row.start_us, end_us: row.end_us });
    this.#checkRepetition(row, index);
    // Of an upload that is refused anyway only the reasons count.
    if (this.#badRows === 0) this.#staging.add(row);
  }

  #refuse(row: number, parts: InvalidPart[]): void {
    this.#badRows++;
    if (this.#bad.length < MAX_BAD_ROWS) this.#bad.push({ row, parts });
  }

  /** Rows with the same row_id are repetitions of one example, so they have the same inputs and expected outputs. */
  #checkRepetition({ row_id, digest }: StagedRow, index: number): void {
    const first = this.#examples.get(row_id);
    if (!first) this.#examples.set(row_id, { digest, row: index });
    else if (first.digest !== digest) {
      const msg = `Value error, results.${first.row} has the same row_id with other inputs or expected_outputs`;
      this.#refuse(index, [{ loc: ["body", "results", index, "row_id"], msg, type: "value_error", input: row_id }]);
    }
  }

  #checkWindow({ experiment_start_time: from, experiment_end_time: to }: UploadHead): void {
    if (to < from) {
      const msg = "Value error, experiment_end_time is before experiment_start_time";
      this.#refuse(-1, [wrong(["body", "experiment_end_time"], msg, to)]);
    }
    this.#times.forEach(({ start_us, end_us }, index) => {
      if (Number.isNaN(start_us) || this.#bad.length >= MAX_BAD_ROWS) return;
      const at = (field: string) => ["body", "results", index, field];
      const parts: InvalidPart[] = [];
      if (start_us < from || start_us > to) parts.push(wrong(at("start_time"), outside(from, to), start_us));
      if (end_us < start_us) parts.push(wrong(at("end_time"), "Value error, end_time is before start_time", end_us));
      else if (end_us > to || end_us < from) parts.push(wrong(at("end_time"), outside(from, to), end_us));
      if (parts.length > 0) this.#refuse(index, parts);
    });
  }
}

const wrong = (loc: (string | number)[], msg: string, at_us: number): InvalidPart => ({
  loc,
  msg,
  type: "value_error",
  input: isoOfMicroseconds(at_us),
});

const outside = (from: number, to: number): string =>
  `Value error, not within the experiment, which is from ${isoOfMicroseconds(from)} to ${isoOfMicroseconds(to)}`;

const NO_DATASET: InvalidPart = {
  loc: ["body"],
  msg: "Value error, dataset_id or dataset_name must be given: it says with what the experiment is compared",
  type: "value_error",
};

function noResults(found: unknown): InvalidPart {
  const loc = ["body", "results"];
  if (found === undefined) return { loc, msg: "Field required", type: "missing" };
  return { loc, msg: "Input should be a valid list", type: "list_type" };
}

/** FastAPI's word for a body that is no JSON. */
function asInvalid<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new InvalidRequestError([{ loc: ["body"], msg: `The body ${error.message}`, type: "json_invalid" }]);
  }
}
