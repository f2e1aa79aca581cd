import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type CsvError, type Info, parse } from "csv-parse";
import {
  CellError,
  type Column,
  columnOf,
  KNOWN_COLUMNS,
  rowOfCells,
} from "../../../experiments/contract/result-files/columns.ts";
import type { JsonObject } from "../../../platform/lib/json/json.ts";
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
      'no column contains inputs. Add a column "input" or "inputs", or one column per key, such as "inputs.question".',
    );
  return columns;
}

function readCells(file: InputFile, columns: Column[], cells: string[], line: number): JsonObject {
  try {
    return rowOfCells(columns, cells);
  } catch (error) {
    if (!(error instanceof CellError)) throw error;
    throw file.error(`line ${line}`, error.message);
  }
}
