import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type CsvError, type Info, parse } from "csv-parse";
import type { JsonObject } from "../../../platform/lib/json/json.ts";
import type { InputFile } from "../input-file.ts";
import { type ReadRow, type Results, RowCompleter } from "../rows.ts";
import { CellError, type Column, columnOf, emptyDraft, KNOWN_COLUMNS, rowOf } from "./csv-columns.ts";
import { datasetOf, type ReadOptions } from "./format.ts";

/**
 * Reads a CSV file with a header; csv-columns.ts says what the columns mean. Cells may hold line breaks within quotes.
 * {@link RowCompleter} says what becomes of missing ids and times.
 */
export function readCsv(file: InputFile, options: ReadOptions): Results {
  const completer = new RowCompleter(file, "line", datasetOf(options));
  const rows = async function* (): AsyncGenerator<ReadRow> {
    let columns: Column[] | undefined;
    for await (const { cells, line } of recordsOf(file)) {
      if (columns) yield completer.complete(readCells(file, columns, cells, line), line);
      else columns = columnsOf(file, cells);
    }
    if (!columns) throw file.wrong("", "is empty.");
  };
  return completer.results(rows(), {});
}

/** The records, header first, each with the number of the line on which it begins. */
async function* recordsOf(file: InputFile): AsyncGenerator<{ cells: string[]; line: number }> {
  const parser = parse({ info: true, skip_empty_lines: true });
  const fed = pipeline(Readable.from(file.chunks()), parser);
  // It is told by the loop below.
  fed.catch(() => undefined);
  try {
    for await (const { record, info } of parser as AsyncIterable<{ record: string[]; info: Info }>) {
      const breaks = record.join("").match(/\r\n|\n|\r/g)?.length ?? 0;
      yield { cells: record, line: info.lines - breaks };
    }
  } catch (error) {
    if (!(error as CsvError).code?.startsWith("CSV_")) throw error;
    throw file.wrong("", `cannot be read as CSV: ${(error as CsvError).message}.`);
  }
}

function columnsOf(file: InputFile, names: string[]): Column[] {
  const columns = names.map((name) => {
    const column = columnOf(name.trimStart());
    if (column) return column;
    throw file.wrong("line 1", `the column "${name}" means nothing here. ${KNOWN_COLUMNS}`);
  });
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw file.wrong("line 1", `there are two columns "${twice}".`);
  if (!columns.some(({ group }) => group === "inputs"))
    throw file.wrong("line 1", 'no column holds inputs: name one "input", or several "inputs.question" and the like.');
  return columns;
}

function readCells(file: InputFile, columns: Column[], cells: string[], line: number): JsonObject {
  const draft = emptyDraft();
  columns.forEach((column, index) => {
    const cell = cells[index] as string;
    if (cell === "") return;
    try {
      column.take(draft, cell);
    } catch (error) {
      if (!(error instanceof CellError)) throw error;
      throw file.wrong(`line ${line}`, `the column "${column.name}" ${error.message}`);
    }
  });
  return rowOf(draft);
}
