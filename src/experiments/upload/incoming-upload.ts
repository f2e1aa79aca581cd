import { invalidParts } from "../../platform/contract/validation-errors.ts";
import { type InvalidPart, InvalidRequestError } from "../../platform/errors.ts";
import { JsonError } from "../../platform/lib/json/json.ts";
import { JsonRows } from "../../platform/lib/json/json-rows.ts";
import { isoOfMicroseconds } from "../../platform/lib/times.ts";
import { UploadHead, UploadRow } from "../contract/upload.ts";
import { type StagedRow, Staging, stagedRow } from "./staging.ts";

/** An error lists the reasons of at most this many rows. */
const MAX_REPORTED_ROWS = 100;

/** The limit of the body without the rows. */
const MAX_HEAD_BYTES = 16 * 2 ** 20;

export interface CheckedUpload {
  head: UploadHead;
  staging: Staging;
}

/**
 * An upload in progress. Each row is checked and staged when its last byte arrives. The time window is checked at the end, because
 * the times of the experiment may follow the rows.
 */
export class IncomingUpload {
  readonly #reader: JsonRows;
  readonly #staging = new Staging();
  readonly #rejected: { row: number; parts: InvalidPart[] }[] = [];
  #rejectedRows = 0;
  readonly #times: Pick<StagedRow, "start_us" | "end_us">[] = [];
  /** The digest and the first row of each row_id. */
  readonly #examples = new Map<string, { digest: string; row: number }>();

  constructor(limit_bytes: number) {
    this.#reader = new JsonRows({
      array: "results",
      max_row_bytes: limit_bytes,
      max_rest_bytes: MAX_HEAD_BYTES,
      onRow: (row, index) => this.#addRow(row, index),
    });
  }

  /** @throws InvalidRequestError when the body is not valid JSON or exceeds a limit */
  push(chunk: Uint8Array): void {
    toInvalidRequest(() => this.#reader.push(chunk));
  }

  /** @throws InvalidRequestError with the reasons of up to 100 rows */
  finish(): CheckedUpload {
    const rest = toInvalidRequest(() => this.#reader.end());
    const head = UploadHead.safeParse(rest, { reportInput: true });
    const parts = head.success ? [] : invalidParts(head.error.issues, rest, ["body"]);
    if (!this.#reader.hasArray) parts.push(missingResults(rest.results));
    if (head.success) {
      if (head.data.dataset_id === undefined && head.data.dataset_name === undefined) parts.push(NO_DATASET);
      this.#checkWindow(head.data);
    }
    for (const { parts: reasons } of this.#rejected.sort((a, b) => a.row - b.row).slice(0, MAX_REPORTED_ROWS))
      parts.push(...reasons);
    if (parts.length > 0) throw new InvalidRequestError(parts);
    return { head: head.data as UploadHead, staging: this.#staging };
  }

  discard(): void {
    this.#staging.discard();
  }

  #addRow(input: unknown, index: number): void {
    const result = UploadRow.safeParse(input, { reportInput: true });
    if (!result.success) {
      this.#times.push({ start_us: Number.NaN, end_us: Number.NaN });
      this.#reject(index, invalidParts(result.error.issues, input, ["body", "results", index]));
      return;
    }
    const row = stagedRow(result.data);
    // Keep the times only: a reference to the row would keep its texts in memory.
    this.#times.push({ start_us: row.start_us, end_us: row.end_us });
    this.#checkRepetition(row, index);
    // The rows of an upload that will be rejected need not be staged.
    if (this.#rejectedRows === 0) this.#staging.add(row);
  }

  #reject(row: number, parts: InvalidPart[]): void {
    this.#rejectedRows++;
    if (this.#rejected.length < MAX_REPORTED_ROWS) this.#rejected.push({ row, parts });
  }

  /** Rows with the same row_id are repetitions of one example: they must have the same inputs and expected outputs. */
  #checkRepetition({ row_id, digest }: StagedRow, index: number): void {
    const first = this.#examples.get(row_id);
    if (!first) this.#examples.set(row_id, { digest, row: index });
    else if (first.digest !== digest) {
      const msg = `Value error, results[${first.row}] has the same row_id but different inputs or expected_outputs`;
      this.#reject(index, [{ loc: ["body", "results", index, "row_id"], msg, type: "value_error", input: row_id }]);
    }
  }

  #checkWindow({ experiment_start_time: from, experiment_end_time: to }: UploadHead): void {
    if (to < from) {
      const msg = "Value error, experiment_end_time is before experiment_start_time";
      this.#reject(-1, [invalidTime(["body", "experiment_end_time"], msg, to)]);
    }
    this.#times.forEach(({ start_us, end_us }, index) => {
      if (Number.isNaN(start_us) || this.#rejected.length >= MAX_REPORTED_ROWS) return;
      const at = (field: string) => ["body", "results", index, field];
      const parts: InvalidPart[] = [];
      if (start_us < from || start_us > to) parts.push(invalidTime(at("start_time"), outside(from, to), start_us));
      if (end_us < start_us)
        parts.push(invalidTime(at("end_time"), "Value error, end_time is before start_time", end_us));
      else if (end_us > to || end_us < from) parts.push(invalidTime(at("end_time"), outside(from, to), end_us));
      if (parts.length > 0) this.#reject(index, parts);
    });
  }
}

const invalidTime = (loc: (string | number)[], msg: string, at_us: number): InvalidPart => ({
  loc,
  msg,
  type: "value_error",
  input: isoOfMicroseconds(at_us),
});

const outside = (from: number, to: number): string =>
  `Value error, must be within the experiment's time window, from ${isoOfMicroseconds(from)} to ${isoOfMicroseconds(to)}`;

const NO_DATASET: InvalidPart = {
  loc: ["body"],
  msg: "Value error, dataset_id or dataset_name is required: experiments are compared within a dataset",
  type: "value_error",
};

function missingResults(found: unknown): InvalidPart {
  const loc = ["body", "results"];
  if (found === undefined) return { loc, msg: "Field required", type: "missing" };
  return { loc, msg: "Input should be a valid list", type: "list_type" };
}

/** FastAPI reports invalid JSON as `json_invalid`. */
function toInvalidRequest<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new InvalidRequestError([{ loc: ["body"], msg: `The body ${error.message}`, type: "json_invalid" }]);
  }
}
