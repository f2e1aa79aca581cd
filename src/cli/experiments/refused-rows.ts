import { isObject } from "../../platform/lib/json/json.ts";
import type { Answer } from "./api.ts";

/** A reason why an upload was refused: `loc` is `["body", "results", 3, "start_time"]` or the like. */
interface Reason {
  loc: (string | number)[];
  msg: string;
  input?: unknown;
}

/**
 * The reasons of a 422, a line each, with the place in the file and in the upload: `line 5 (results[3]) start_time: Field
 * required`. Undefined when the answer has no such list.
 */
export function refusedRows({ text }: Answer, placeOf: (row: number) => string | undefined): string | undefined {
  const reasons = reasonsOf(text);
  if (!reasons || reasons.length === 0) return undefined;
  const lines = reasons.map(({ loc, msg, input }) => `  ${where(loc, placeOf)}: ${msg}${shown(input)}`);
  return lines.join("\n");
}

function reasonsOf(text: string): Reason[] | undefined {
  try {
    const body: unknown = JSON.parse(text);
    return isObject(body) && Array.isArray(body.detail) ? (body.detail as Reason[]) : undefined;
  } catch {
    return undefined;
  }
}

function where([, ...loc]: Reason["loc"], placeOf: (row: number) => string | undefined): string {
  const [list, row, ...field] = loc;
  if (list !== "results" || typeof row !== "number") return nameOf(loc) || "the upload";
  const place = placeOf(row);
  const inUpload = `results[${row}]`;
  return `${place === undefined ? inUpload : `${place} (${inUpload})`} ${nameOf(field)}`.trimEnd();
}

/** `evaluation_scores[0].key` */
const nameOf = (loc: Reason["loc"]): string =>
  loc.map((part, index) => (typeof part === "number" ? `[${part}]` : index > 0 ? `.${part}` : part)).join("");

/** What was found there, when it is short. */
function shown(input: unknown): string {
  if (input === undefined || input === null || typeof input === "object") return "";
  const text = JSON.stringify(input);
  return text.length > 60 ? "" : `, not ${text}`;
}
