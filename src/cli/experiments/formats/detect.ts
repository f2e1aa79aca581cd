import { isObject } from "../../../platform/lib/json/json.ts";
import type { InputFile } from "../input-file.ts";
import { partsOf } from "./json-walk.ts";
import { linesOf } from "./lines.ts";

export const FORMATS = ["json", "jsonl", "csv", "lm-eval", "promptfoo"] as const;
export type Format = (typeof FORMATS)[number];

/**
 * The format of a file by its extension, and where that does not tell by its beginning.
 *
 * @throws CommandError when neither tells
 */
export async function detectFormat(file: InputFile): Promise<Format> {
  if (file.extension === ".csv") return "csv";
  if (file.extension === ".json") return ofDocument(file);
  if (file.extension === ".jsonl" || file.extension === ".ndjson") return ofLine(asObject(await firstLine(file)));
  const beginning = (await firstChunk(file)).trimStart();
  const [line = ""] = beginning.split("\n", 1);
  const object = asObject(line);
  // A whole object in the first line is a row, unless it is an upload in one line.
  if (object && !("results" in object)) return ofLine(object);
  if (/^[[{]/.test(beginning)) return ofDocument(file);
  if (line.includes(",")) return "csv";
  throw file.wrong("", "could be anything. Say what it is with --format.");
}

function ofLine(object: object | undefined): Format {
  if (!object) return "jsonl";
  if ("doc" in object && ("resps" in object || "filtered_resps" in object)) return "lm-eval";
  return isPromptfooResult(object) ? "promptfoo" : "jsonl";
}

const isPromptfooResult = (object: object): boolean =>
  !("inputs" in object) && ["namedScores", "gradingResult", "promptIdx", "latencyMs"].some((name) => name in object);

/** Reads until the results begin: a list of them in an upload, an object around the list in promptfoo. */
async function ofDocument(file: InputFile): Promise<Format> {
  let isNested = false;
  const parts = partsOf(file, (path, first) => {
    if (path.length === 0) return "enter";
    if (path.length === 1 && path[0] === "results") {
      isNested = first === "{";
      return isNested ? "stop" : "enter";
    }
    return path.at(-1) === "*" ? "take" : "skip";
  });
  for await (const { value } of parts) return isObject(value) && isPromptfooResult(value) ? "promptfoo" : "json";
  return isNested ? "promptfoo" : "json";
}

async function firstLine(file: InputFile): Promise<string> {
  for await (const { text } of linesOf(file)) return text;
  return "";
}

async function firstChunk(file: InputFile): Promise<string> {
  for await (const chunk of file.chunks()) return chunk.toString();
  return "";
}

function asObject(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
