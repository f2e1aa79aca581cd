import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type CsvError, type Info, parse } from "csv-parse";
import { isObject, type JsonObject, jsonOrUndefined } from "../../../platform/lib/json/json.ts";
import type { InputFile } from "../input-file.ts";
import { type ReadOptions, type ReadRow, type Results, RowCompleter, requireDataset } from "../rows.ts";

/** Reads a CSV file with a header row. {@link columnOf} defines the columns. {@link RowCompleter} adds missing IDs and times. */
export function readCsv(file: InputFile, options: ReadOptions): Results {
  const completer = new RowCompleter(file, "line", requireDataset(options));
  const rows = async function* (): AsyncGenerator<ReadRow> {
    let columns: Column[] | undefined;
    for await (const { cells, line } of recordsOf(file)) {
      if (columns) yield completer.complete(readCells(file, columns, cells, line), line);
      else columns = columnsOf(file, cells);
    }
    if (!columns) throw file.error("", "the file is empty.");
  };
  return completer.results(rows(), {});
}

/** Yields the records, header first, with the number of the line on which each begins. */
async function* recordsOf(file: InputFile): AsyncGenerator<{ cells: string[]; line: number }> {
  const parser = parse({ info: true, skip_empty_lines: true });
  // Errors are ignored here because the loop below throws them.
  pipeline(Readable.from(file.chunks()), parser).catch(() => undefined);
  try {
    for await (const { record, info } of parser as AsyncIterable<{ record: string[]; info: Info }>) {
      const breaks = record.join("").match(/\r\n|\n|\r/g)?.length ?? 0;
      yield { cells: record, line: info.lines - breaks };
    }
  } catch (error) {
    if (!(error as CsvError).code?.startsWith("CSV_")) throw error;
    throw file.error("", `invalid CSV: ${(error as CsvError).message}.`);
  }
}

function columnsOf(file: InputFile, names: string[]): Column[] {
  const columns = names.map((name) => {
    const column = columnOf(name.trimStart());
    if (column) return column;
    throw file.error("line 1", `unknown column "${name}". ${KNOWN_COLUMNS}`);
  });
  const duplicate = names.find((name, index) => names.indexOf(name) !== index);
  if (duplicate !== undefined) throw file.error("line 1", `duplicate column "${duplicate}".`);
  if (!columns.some(({ field }) => field === "inputs"))
    throw file.error(
      "line 1",
      'no column contains inputs: add a column "input", or one column per key, such as "inputs.question".',
    );
  return columns;
}

function readCells(file: InputFile, columns: Column[], cells: string[], line: number): JsonObject {
  const draft: Draft = { row: {}, scores: new Map(), more_scores: [] };
  columns.forEach((column, index) => {
    const cell = cells[index] as string;
    if (cell === "") return;
    try {
      column.add(draft, cell);
    } catch (error) {
      if (!(error instanceof CellError)) throw error;
      throw file.error(`line ${line}`, `column "${column.name}" ${error.message}`);
    }
  });
  const evaluation_scores = [...draft.scores.values(), ...draft.more_scores];
  return evaluation_scores.length > 0 ? { ...draft.row, evaluation_scores } : draft.row;
}

interface Draft {
  row: JsonObject;
  /** Scores by feedback key. */
  scores: Map<string, JsonObject>;
  /** The scores of the column `evaluation_scores`. */
  more_scores: unknown[];
}

interface Column {
  name: string;
  /** The field of the row that the column sets. */
  field: string;
  /** Adds a cell that is not empty to the row. @throws CellError for an invalid cell */
  add(draft: Draft, cell: string): void;
}

/** Thrown for an invalid cell. The column name is put before the message. */
class CellError extends Error {}

const KNOWN_COLUMNS =
  "Valid columns: row_id, input or inputs.*, expected or expected_outputs.*, output or actual_outputs.*, score.* (numbers), " +
  "value.* (labels), comment.*, latency (seconds), start_time, end_time, run_name, error, metadata.*; with JSON " +
  "cells: inputs, expected_outputs, actual_outputs, metadata, evaluation_scores.";

/** Fields whose value is the text of the cell. */
const TEXT_FIELDS = ["row_id", "start_time", "end_time", "run_name", "error"];

/** Columns that set one key of an object: the field of the row, and the key. Expected and actual outputs use the same key. */
const TEXT_COLUMNS: Record<string, [field: string, key: string]> = {
  input: ["inputs", "input"],
  expected: ["expected_outputs", "output"],
  output: ["actual_outputs", "output"],
};

/** Row fields that contain objects. Each has one column per key (`inputs.question`), or one column with the object as JSON. */
const OBJECT_COLUMNS: Record<string, string> = {
  inputs: "inputs",
  expected_outputs: "expected_outputs",
  actual_outputs: "actual_outputs",
  metadata: "run_metadata",
};

function columnOf(name: string): Column | undefined {
  const column = (field: string, add: Column["add"]): Column => ({ name, field, add });
  const set = (field: string, read: (cell: string) => unknown) =>
    column(field, ({ row }, cell) => Object.assign(row, { [field]: read(cell) }));
  if (TEXT_FIELDS.includes(name)) return set(name, (cell) => cell);
  if (name === "latency") return set(name, numberOf);
  if (name === "evaluation_scores") return column(name, (draft, cell) => draft.more_scores.push(...listOf(cell)));
  const text = Object.hasOwn(TEXT_COLUMNS, name) ? TEXT_COLUMNS[name] : undefined;
  if (text) return column(text[0], ({ row }, cell) => addFields(row, text[0], { [text[1]]: cell }));
  const [, prefix = name, key] = /^([a-z_]+)\.(.+)$/s.exec(name) ?? [];
  const field = Object.hasOwn(OBJECT_COLUMNS, prefix) ? OBJECT_COLUMNS[prefix] : undefined;
  if (field !== undefined)
    return column(field, ({ row }, cell) =>
      addFields(row, field, key === undefined ? objectOf(cell) : { [key]: contentOf(cell) }),
    );
  if (key === undefined) return undefined;
  if (prefix === "score") return column(prefix, (draft, cell) => addScore(draft, key, { score: numberOf(cell) }));
  if (prefix === "value" || prefix === "comment")
    return column(prefix, (draft, cell) => addScore(draft, key, { [prefix]: cell }));
  return undefined;
}

function addFields(row: JsonObject, field: string, members: JsonObject): void {
  row[field] = { ...(row[field] as JsonObject | undefined), ...members };
}

function addScore({ scores }: Draft, key: string, part: JsonObject): void {
  scores.set(key, { key, ...scores.get(key), ...part });
}

/** Parses a cell that is a JSON list or object. Everything else stays text, including numbers: an ID such as 007 must not change. */
function contentOf(cell: string): unknown {
  if (!/^\s*[[{]/.test(cell)) return cell;
  return jsonOrUndefined(cell) ?? cell;
}

function objectOf(cell: string): JsonObject {
  const value = jsonOrUndefined(cell);
  if (isObject(value)) return value;
  throw new CellError(`must be a JSON object, not ${shortened(cell)}.`);
}

function listOf(cell: string): unknown[] {
  const value = jsonOrUndefined(cell);
  if (Array.isArray(value)) return value;
  throw new CellError(`must be a JSON list, not ${shortened(cell)}.`);
}

function numberOf(cell: string): number {
  const text = cell.trim().toLowerCase();
  if (text === "true" || text === "false") return Number(text === "true");
  const number = text === "" ? Number.NaN : Number(text);
  if (Number.isFinite(number)) return number;
  throw new CellError(
    `must be a number, not ${shortened(cell)}. For labels, use a column whose name starts with "value.".`,
  );
}

const shortened = (cell: string): string => JSON.stringify(cell.length > 40 ? `${cell.slice(0, 40)}…` : cell);
