import type { InputFile } from "../input-file.ts";
import { type ReadRow, type Results, RowCompleter } from "../rows.ts";
import { datasetOf, type ReadOptions } from "./format.ts";
import { type Line, linesOf } from "./lines.ts";

/**
 * Reads a row in each line: an object with the fields of an upload's row, of which only `inputs` is needed, and perhaps with
 * `latency` in seconds. {@link RowCompleter} says what becomes of missing ids and times.
 */
export function readJsonl(file: InputFile, options: ReadOptions): Results {
  const completer = new RowCompleter(file, "line", datasetOf(options));
  const rows = async function* (): AsyncGenerator<ReadRow> {
    for await (const line of linesOf(file)) yield completer.complete(parseLine(file, line), line.number);
  };
  return completer.results(rows(), {});
}

/** @throws CommandError that names the line */
export function parseLine(file: InputFile, { text, number }: Line): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw file.wrong(`line ${number}`, `is not valid JSON: ${(error as Error).message}.`);
  }
}
