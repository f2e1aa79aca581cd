import { parse as secureParse } from "secure-json-parse";
import { faultOf, type JsonFault } from "./json-fault.ts";

export type JsonObject = Record<string, unknown>;

/** Recursive functions could overflow the stack for deeper documents. */
export const MAX_DEPTH = 100;

/** The serving thread creates, checks and writes the values: 100,000 distinct keys took 0.3 s. */
const SERVING_LIMITS = { depth: MAX_DEPTH, keys: 100_000, values: 1_000_000 };

/** The message completes the sentence "The body …". */
export class JsonError extends Error {
  readonly fault: JsonFault;

  constructor(message: string, fault: JsonFault = { position: 0, reason: message }) {
    super(message);
    this.fault = fault;
  }
}

/**
 * Parses JSON of a client. Replaces NUL and unpaired surrogates with U+FFFD, because Postgres cannot store them in text or jsonb.
 *
 * @throws JsonError for invalid JSON, documents above the limits, and keys that would modify an object's prototype
 */
export function parseUntrusted(text: string, max = SERVING_LIMITS): unknown {
  const { depth, keys, values } = sizeOf(text);
  if (depth > max.depth) throw new JsonError(`is nested ${depth} levels deep; the limit is ${max.depth}`);
  if (keys > max.keys) throw new JsonError(`has ${keys} keys; the limit is ${max.keys}`);
  if (values > max.values) throw new JsonError(`has ${values} values; the limit is ${max.values}`);
  let value: unknown;
  try {
    value = secureParse(text, undefined, { protoAction: "error", constructorAction: "error" });
  } catch (error) {
    const reason = (error as Error).message;
    if (reason.includes("forbidden prototype"))
      throw new JsonError("has a key that is not allowed: __proto__ or constructor.prototype");
    throw new JsonError(`is not valid JSON: ${reason}`, faultOf(text));
  }
  return SUSPECT.test(text) ? cleanStrings(value) : value;
}

/** Matches JSON text that may contain a character that Postgres refuses. */
const SUSPECT = /\\u0000|\\u[dD][89a-fA-F]|[\ud800-\udfff]/;

/** Replaces NUL and unpaired surrogates in JSON text with U+FFFD. */
export function cleanJsonText(text: string): string {
  return SUSPECT.test(text) ? JSON.stringify(cleanStrings(JSON.parse(text))) : text;
}

/** Replaces NUL and unpaired surrogates with U+FFFD. */
export const cleanText = (text: string): string => text.replaceAll("\0", "\ufffd").toWellFormed();

/** Like {@link cleanText}, for all strings and keys in a JSON value. */
export function cleanStrings(value: unknown): unknown {
  if (typeof value === "string") return cleanText(value);
  if (Array.isArray(value)) return value.map(cleanStrings);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [cleanStrings(key), cleanStrings(item)]));
}

/** Determines the nesting depth and the number of keys and values of a JSON text without parsing it. */
function sizeOf(text: string): { depth: number; keys: number; values: number } {
  let [level, depth, keys, values] = [0, 0, 0, 1];
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case 0x22: // a string: skip to its closing quote
        for (i++; i < text.length && text.charCodeAt(i) !== 0x22; i++) {
          if (text.charCodeAt(i) === 0x5c) i++;
        }
        break;
      case 0x5b: // [
      case 0x7b: // {
        level++;
        values++;
        if (level > depth) depth = level;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        level--;
        break;
      case 0x3a: // :
        keys++;
        break;
      case 0x2c: // ,
        values++;
        break;
    }
  }
  return { depth, keys, values };
}

/** Whether a value is an object, but not an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Parses a JSON text. Returns undefined if the text is not JSON. */
export function jsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the content of langgraph.json without fields such as `"env": ""` and `"auth": null`, which project templates contain. */
export function withoutUnset(project: JsonObject): JsonObject {
  const { http } = project;
  return withoutEmpty({ ...project, ...(isObject(http) && { http: withoutEmpty(http) }) });
}

const withoutEmpty = (fields: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value));
