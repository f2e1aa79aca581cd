import { v5 as idOfName } from "uuid";
import {
  CellError,
  type Column,
  columnOf,
  rowOfCells,
  shortened,
} from "../../../../../src/experiments/contract/result-files/columns.ts";
import { RowCompleter, RowError } from "../../../../../src/experiments/contract/result-files/rows.ts";
import { microsecondsOf } from "../../../../../src/platform/contract/iso-time.ts";

/** The content of a CSV or JSONL file as a table. */
export interface ResultFile {
  columns: readonly string[];
  rows: readonly ResultRow[];
}

interface ResultRow {
  /** Line on which the row begins, from 1. */
  line: number;
  /** One per column: texts of a CSV file, values of a JSONL file. */
  cells: readonly unknown[];
}

/** A part of a row that cannot be uploaded. */
export interface Problem {
  line: number;
  /** Name of the column in the file. */
  column?: string;
  message: string;
}

export const isResultFile = (name: string): boolean => /\.(jsonl|ndjson|csv)$/i.test(name);

/** The browser keeps the whole content in memory. The command line does not, so it uploads larger files. */
export const MAX_FILE_BYTES = 50_000_000;

/** @throws Error that states the line */
export async function readResultFile(file: File): Promise<ResultFile> {
  const text = await file.text();
  const found = /\.csv$/i.test(file.name) ? await readCsv(text) : readJsonl(text);
  if (found.rows.length === 0) throw new Error("The file contains no rows to upload.");
  return found;
}

async function readCsv(text: string): Promise<ResultFile> {
  // The parser is loaded with the first CSV file.
  const { parse } = await import("csv-parse/browser/esm/sync");
  const records = parse(text, { bom: true, info: true, skip_empty_lines: true }) as unknown as {
    record: string[];
    info: { lines: number };
  }[];
  const [head, ...rest] = records.map(({ record, info }) => ({
    line: info.lines - (record.join("").match(/\r\n|\n|\r/g)?.length ?? 0),
    cells: record,
  }));
  const columns = head?.cells.map((name) => name.trim()) ?? [];
  const duplicate = columns.find((name, index) => columns.indexOf(name) !== index);
  if (duplicate !== undefined) throw new Error(`Line 1: duplicate column ${shortened(duplicate)}.`);
  return { columns, rows: rest };
}

function readJsonl(text: string): ResultFile {
  const columns = new Map<string, number>();
  const rows = text
    .replace(/^\ufeff/, "")
    .split("\n")
    .flatMap((source, index): ResultRow[] => {
      if (source.trim() === "") return [];
      const cells: unknown[] = [];
      for (const [name, value] of Object.entries(objectOf(source, index + 1))) {
        if (!columns.has(name)) columns.set(name, columns.size);
        cells[columns.get(name) as number] = value;
      }
      return [{ line: index + 1, cells }];
    });
  return { columns: [...columns.keys()], rows };
}

function objectOf(source: string, line: number): object {
  let value: unknown;
  try {
    value = JSON.parse(source);
  } catch (error) {
    throw new Error(`Line ${line}: invalid JSON: ${(error as Error).message}.`);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new Error(`Line ${line}: a row must be an object, not ${shortened(value)}.`);
}

/** What a column of a file is used for. */
export const USES = {
  ignored: "Not used",
  inputs: "Input",
  expected_outputs: "Expected output",
  actual_outputs: "Output",
  score: "Score (number)",
  value: "Score (label)",
  comment: "Comment on a score",
  evaluation_scores: "List of scores (JSON)",
  metadata: "Metadata of the run",
  latency: "Latency (seconds)",
  error: "Error",
  row_id: "ID of the example",
  run_name: "Name of the run",
  start_time: "Start time",
  end_time: "End time",
} as const;
export type Use = keyof typeof USES;

/** Uses whose column has a key, for example the name of a score. */
const KEYED: readonly Use[] = ["inputs", "expected_outputs", "actual_outputs", "score", "value", "comment", "metadata"];

/** Uses of columns with the names that the command line accepts, too. */
const NAMED: Record<string, Use> = {
  input: "inputs",
  expected: "expected_outputs",
  output: "actual_outputs",
  run_metadata: "metadata",
};

const GUESSES: readonly [RegExp, Use][] = [
  [/(^|[ _-])(id|index|number|no)$/i, "metadata"],
  [/expect|reference|ground_?truth|target|ideal|gold/i, "expected_outputs"],
  [/question|query|prompt|input|topic|task|instruction|context|message/i, "inputs"],
  [/answer|response|prediction|completion|output|result|generat/i, "actual_outputs"],
];

/** Returns the use of each column that its name, or else its values, suggest. */
export function guessUses({ columns, rows }: ResultFile): Use[] {
  return columns.map((name, index) => {
    const use = NAMED[name] ?? (columnOf(name) && (name.split(".")[0] as Use));
    if (use) return use;
    const guess = GUESSES.find(([pattern]) => pattern.test(name));
    if (guess) return guess[1];
    const values = rows.map(({ cells }) => cells[index]).filter((cell) => cell !== undefined && cell !== "");
    return values.length > 0 && values.every(isNumber) ? "score" : "metadata";
  });
}

const isNumber = (cell: unknown): boolean =>
  typeof cell === "number" ||
  typeof cell === "boolean" ||
  /^(-?[\d.]+(e-?\d+)?|true|false)$/i.test(String(cell).trim());

/** Returns the columns that the uses stand for. Undefined for ignored columns. */
function columnsOf(names: readonly string[], uses: readonly Use[]): (Column | undefined)[] {
  return names.map((name, index) => {
    const use = uses[index];
    if (use === undefined || use === "ignored") return undefined;
    if (name === "run_metadata" && use === "metadata") return columnOf("metadata");
    // A name that states its use already, such as `inputs.question`.
    if (columnOf(name) && (NAMED[name] ?? name.split(".")[0]) === use) return columnOf(name);
    if (!KEYED.includes(use)) return columnOf(use);
    const isOnly = uses.filter((other) => other === use).length === 1;
    // Expected and actual outputs have the same key if possible, so that they can be compared.
    if (isOnly && use === "expected_outputs") return columnOf("expected");
    if (isOnly && use === "actual_outputs") return columnOf("output");
    const last = name.split(".").at(-1);
    // `reference.answer` and `outputs.answer` have the same key, but `faithfulness.score` and `relevancy.score` are two scores.
    const isShared = names.some((other, i) => i !== index && uses[i] === use && other.split(".").at(-1) === last);
    return columnOf(`${use}.${isShared ? name : last}`);
  });
}

type Row = Record<string, unknown>;

/** Converts rows to the upload format, with their problems. The rows of several calls with the same completer are one upload. */
function convert(
  file: ResultFile,
  uses: readonly Use[],
  completer: RowCompleter,
): { rows: Row[]; problems: Problem[] } {
  const columns = columnsOf(file.columns, uses);
  const problems: Problem[] = [];
  if (!uses.includes("inputs")) problems.push({ line: 1, message: "no column is used as an input." });
  const rows = file.rows.flatMap(({ line, cells }): Row[] => {
    try {
      const row = rowOfCells(columns, cells);
      if (row.inputs === undefined && problems[0]?.line !== 1)
        problems.push({ line, message: "the row has no input." });
      return [completer.complete(row)];
    } catch (error) {
      if (!(error instanceof CellError || error instanceof RowError)) throw error;
      const index = error instanceof CellError ? columns.findIndex((column) => column?.name === error.column) : -1;
      problems.push({ line, column: file.columns[index], message: error.message.replace(/^column "[^"]*" /, "") });
      return [];
    }
  });
  return { rows, problems };
}

const TOOLS = { idOfName, microsecondsOf };

/** Returns the first rows as they will be stored, and what is wrong in all rows. */
export function checkRows(file: ResultFile, uses: readonly Use[], max: number): { rows: Row[]; problems: Problem[] } {
  const { rows, problems } = convert(file, uses, new RowCompleter("preview", TOOLS));
  return { rows: rows.slice(0, max), problems };
}

/** Returns the body of the upload. The rows must have no problems. */
export function uploadBody(
  file: ResultFile,
  uses: readonly Use[],
  { dataset_name, experiment_name }: { dataset_name: string; experiment_name: string },
): Blob {
  const completer = new RowCompleter(dataset_name, TOOLS);
  const { rows } = convert(file, uses, completer);
  const head = JSON.stringify({ dataset_name, experiment_name, ...completer.times() });
  return new Blob([
    '{"results":[',
    ...rows.flatMap((row, index) => (index === 0 ? [JSON.stringify(row)] : [",", JSON.stringify(row)])),
    `],${head.slice(1)}`,
  ]);
}
