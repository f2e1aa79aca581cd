import type { JsonObject } from "../../../platform/lib/json/json.ts";
import type { InputFile } from "../input-file.ts";
import { type ReadRow, type Results, RowCompleter } from "../rows.ts";
import { datasetOf, type ReadOptions } from "./format.ts";
import { partsOf, type Visit } from "./json-walk.ts";

/**
 * Reads the body of an upload, `{"experiment_name": …, "results": [{…}, …], …}`, whose rows and other fields are passed on as
 * they are, or a bare list of rows, which are completed as those of JSONL are.
 */
export async function readJson(file: InputFile, options: ReadOptions): Promise<Results> {
  const first = await firstCharacter(file);
  if (first === "[") return readList(file, options);
  if (first === "{") return readUpload(file);
  throw file.wrong("", 'must be an object with "results", or a list of rows.');
}

async function firstCharacter(file: InputFile): Promise<string> {
  for await (const chunk of file.chunks()) return chunk.toString().trimStart().charAt(0);
  return "";
}

function readList(file: InputFile, options: ReadOptions): Results {
  const completer = new RowCompleter(file, "element", datasetOf(options));
  const rows = async function* (): AsyncGenerator<ReadRow> {
    const parts = partsOf(file, (path) => (path.length === 0 ? "enter" : "take"));
    for await (const { index, value } of parts) yield completer.complete(value, index);
  };
  return completer.results(rows(), {});
}

function readUpload(file: InputFile): Results {
  const head: JsonObject = {};
  let hasResults = false;
  const visit: Visit = (path, first) => {
    const isResults = path.length === 1 && path[0] === "results";
    if (isResults && (hasResults || first !== "[")) throw file.wrong("", 'must have one list "results".');
    hasResults ||= isResults;
    return path.length === 0 || isResults ? "enter" : "take";
  };
  const rows = async function* (): AsyncGenerator<ReadRow> {
    for await (const { path, index, value, text } of partsOf(file, visit)) {
      if (path.length === 2) yield { text, place: index };
      else head[path[0] as string] = value;
    }
    if (!hasResults) throw file.wrong("", 'has no list "results", which is where the rows are.');
  };
  return { rows: rows(), unit: "element", head: () => head, unknown: () => new Set() };
}
