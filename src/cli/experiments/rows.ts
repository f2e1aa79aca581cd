import { isRowField, RowError, RowCompleter as Rows } from "../../experiments/contract/result-files/rows.ts";
import { idOfName } from "../../platform/lib/ids.ts";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import { microsecondsOf } from "../../platform/lib/times.ts";
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

const TOOLS = { idOfName, microsecondsOf };

/** Completes the rows of a file; see the class of the same name in the contract. Errors have the position in the file. */
export class RowCompleter {
  readonly #file: InputFile;
  readonly #unit: PositionUnit;
  readonly #rows: Rows;
  readonly #unknown = new Set<string>();

  constructor(file: InputFile, unit: PositionUnit, dataset: string) {
    this.#file = file;
    this.#unit = unit;
    this.#rows = new Rows(dataset, TOOLS);
  }

  /** @throws CommandError for a row that is not an object or has an invalid latency */
  complete(given: unknown, position: number): ReadRow {
    if (!isObject(given)) throw this.#file.error(`${this.#unit} ${position}`, "a row must be an object.");
    for (const name of Object.keys(given)) if (!isRowField(name)) this.#unknown.add(name);
    try {
      return { text: JSON.stringify(this.#rows.complete(given)), position };
    } catch (error) {
      if (!(error instanceof RowError)) throw error;
      throw this.#file.error(`${this.#unit} ${position}`, error.message);
    }
  }

  /** @param head fields of the experiment except its start and end time, which come from the rows */
  results(rows: AsyncIterable<ReadRow>, head: JsonObject): Results {
    return {
      rows: this.#requireRows(rows),
      unit: this.#unit,
      head: () => ({ ...head, ...this.#rows.times() }),
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
}
