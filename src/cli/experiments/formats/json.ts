import type { JsonObject } from "../../../platform/lib/json/json.ts";
import type { InputFile } from "../input-file.ts";
import { type ReadOptions, type ReadRow, type Results, RowCompleter, requireDataset } from "../rows.ts";
import { type Visit, valuesOf } from "./json-walk.ts";

/** Reads an upload, whose rows are sent unchanged, or a list of rows, to which {@link RowCompleter} adds missing IDs and times. */
export async function readJson(file: InputFile, options: ReadOptions): Promise<Results> {
  const first = (await file.firstChunk()).trimStart().charAt(0);
  if (first === "[") return readList(file, options);
  if (first === "{") return readUpload(file);
  throw file.error("", 'the file must be a list of rows, or an object with a list "results".');
}

function readList(file: InputFile, options: ReadOptions): Results {
  const completer = new RowCompleter(file, "element", requireDataset(options));
  const rows = async function* (): AsyncGenerator<ReadRow> {
    const values = valuesOf(file, (path) => (path.length === 0 ? "enter" : "take"));
    for await (const { index, value } of values) yield completer.complete(value, index);
  };
  return completer.results(rows(), {});
}

function readUpload(file: InputFile): Results {
  const head: JsonObject = {};
  let hasResults = false;
  const visit: Visit = (path, first) => {
    const isResults = path.length === 1 && path[0] === "results";
    if (isResults && (hasResults || first !== "["))
      throw file.error("", 'the file must contain exactly one list "results".');
    hasResults ||= isResults;
    return path.length === 0 || isResults ? "enter" : "take";
  };
  const rows = async function* (): AsyncGenerator<ReadRow> {
    for await (const { path, index, value, text } of valuesOf(file, visit)) {
      if (path.length === 2) yield { text, position: index };
      else head[path[0] as string] = value;
    }
    if (!hasResults) throw file.error("", 'the file has no "results" list to read the rows from.');
  };
  return { rows: rows(), unit: "element", head: () => head, unknown: () => new Set() };
}

export interface Line {
  text: string;
  /** Line number, starting at 1. */
  number: number;
}

/** Reads one row per line, optionally with `latency` in seconds. {@link RowCompleter} adds missing IDs and times. */
export function readJsonl(file: InputFile, options: ReadOptions): Results {
  const completer = new RowCompleter(file, "line", requireDataset(options));
  const rows = async function* (): AsyncGenerator<ReadRow> {
    for await (const line of linesOf(file)) yield completer.complete(parseLine(file, line), line.number);
  };
  return completer.results(rows(), {});
}

/** @throws CommandError with the line number */
export function parseLine(file: InputFile, { text, number }: Line): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw file.error(`line ${number}`, `invalid JSON: ${(error as Error).message}.`);
  }
}

const NEWLINE = 0x0a;

/** Yields nonblank lines of a file. Only U+000A ends a line: JSON strings may contain U+2028, which some readers treat as a line end. */
export async function* linesOf(file: InputFile): AsyncGenerator<Line> {
  let buffered: Buffer[] = [];
  let number = 0;
  for await (const chunk of file.chunks()) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      buffered.push(chunk.subarray(start, end));
      const text = decode(buffered);
      buffered = [];
      start = end + 1;
      number++;
      if (text !== "") yield { text, number };
    }
    buffered.push(chunk.subarray(start));
  }
  const last = decode(buffered);
  if (last !== "") yield { text: last, number: number + 1 };
}

const decode = (chunks: Buffer[]): string =>
  (chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)).toString().trim();
