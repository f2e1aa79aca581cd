import { isObject, jsonOrUndefined } from "../../../platform/lib/json/json.ts";
import type { InputFile } from "../input-file.ts";
import type { ReadFormat } from "../rows.ts";
import { readCsv } from "./csv.ts";
import { linesOf, readJson, readJsonl } from "./json.ts";
import { valuesOf } from "./json-walk.ts";
import { readLmEval } from "./lm-eval.ts";
import { readPromptfoo } from "./promptfoo.ts";

export type Format = "json" | "jsonl" | "csv" | "lm-eval" | "promptfoo";

export const READERS: Record<Format, ReadFormat> = {
  json: readJson,
  jsonl: readJsonl,
  csv: readCsv,
  "lm-eval": readLmEval,
  promptfoo: readPromptfoo,
};

/** @throws CommandError when neither the extension nor the first bytes identify the format */
export async function detectFormat(file: InputFile): Promise<Format> {
  if (file.extension === ".csv") return "csv";
  if (file.extension === ".json") return detectDocument(file);
  if (file.extension === ".jsonl" || file.extension === ".ndjson") return detectLine(asObject(await firstLine(file)));
  const start = (await file.firstChunk()).trimStart();
  const [line = ""] = start.split("\n", 1);
  const object = asObject(line);
  // A complete object on the first line is a row, unless the file is an upload written on one line.
  if (object && !("results" in object)) return detectLine(object);
  if (/^[[{]/.test(start)) return detectDocument(file);
  if (line.includes(",")) return "csv";
  throw file.error("", "the format cannot be detected. Set it with --format.");
}

function detectLine(object: object | undefined): Format {
  if (!object) return "jsonl";
  if ("doc" in object && ("resps" in object || "filtered_resps" in object)) return "lm-eval";
  return isPromptfooResult(object) ? "promptfoo" : "jsonl";
}

const isPromptfooResult = (object: object): boolean =>
  !("inputs" in object) && ["namedScores", "gradingResult", "promptIdx", "latencyMs"].some((name) => name in object);

/** Detects the format from the first element of the list `results` or of the root list. If `results` is an object, it is promptfoo. */
async function detectDocument(file: InputFile): Promise<Format> {
  let isNested = false;
  const values = valuesOf(file, (path, first) => {
    if (path.length === 0) return "enter";
    if (path.length === 1 && path[0] === "results") {
      isNested = first === "{";
      return isNested ? "stop" : "enter";
    }
    return path.at(-1) === "*" ? "take" : "skip";
  });
  for await (const { value } of values) return isObject(value) && isPromptfooResult(value) ? "promptfoo" : "json";
  return isNested ? "promptfoo" : "json";
}

async function firstLine(file: InputFile): Promise<string> {
  for await (const { text } of linesOf(file)) return text;
  return "";
}

function asObject(text: string): object | undefined {
  const value = jsonOrUndefined(text);
  return isObject(value) ? value : undefined;
}
