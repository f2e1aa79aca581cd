import { parse as secureParse } from "secure-json-parse";
import { faultOf, type JsonFault } from "./json-fault.ts";

/** Any JSON object. */
export type JsonObject = Record<string, unknown>;

/**
 * Deeper documents are refused: recursive readers would overflow the stack, and legitimate documents are not so deep.
 */
export const MAX_DEPTH = 100;

/**
 * Larger documents are refused. The serving thread creates, checks and writes their values: 100,000 distinct keys took
 * 0.3 s.
 */
export const MAX_KEYS = 100_000;
export const MAX_VALUES = 1_000_000;

/** A text was refused as JSON. The message describes the problem for people, `fault` for programs. */
export class JsonError extends Error {
  readonly fault: JsonFault;

  constructor(message: string, fault: JsonFault = { position: 0, reason: message }) {
    super(message);
    this.fault = fault;
  }
}

/**
 * Parses JSON of a client. Refuses documents above the limits, and keys that would modify an object's prototype.
 * Replaces NUL and unpaired surrogates by U+FFFD, because Postgres cannot store them in text or jsonb.
 *
 * @throws JsonError with a sentence for the caller
 */
export function parseUntrusted(text: string): unknown {
  const { depth, keys, values } = sizeOf(text);
  if (depth > MAX_DEPTH) throw new JsonError(`nested ${depth} levels deep; the limit is ${MAX_DEPTH}`);
  if (keys > MAX_KEYS) throw new JsonError(`has ${keys} keys; the limit is ${MAX_KEYS}`);
  if (values > MAX_VALUES) throw new JsonError(`has ${values} values; the limit is ${MAX_VALUES}`);
  let value: unknown;
  try {
    value = secureParse(text, undefined, { protoAction: "error", constructorAction: "error" });
  } catch (error) {
    const reason = (error as Error).message;
    if (reason.includes("forbidden prototype")) {
      throw new JsonError("holds the key __proto__ or constructor.prototype, which is not allowed");
    }
    throw new JsonError(`is not valid JSON: ${reason}`, faultOf(text));
  }
  return SUSPECT.test(text) ? cleanStrings(value) : value;
}

/** Matches JSON text that may contain a character that Postgres refuses. False positives only cost time. */
const SUSPECT = /\\u0000|\\u[dD][89a-fA-F]|[\ud800-\udfff]/;

/** Replaces NUL and unpaired surrogates in JSON text by U+FFFD. Without any, it costs one scan. */
export function cleanJsonText(text: string): string {
  return SUSPECT.test(text) ? JSON.stringify(cleanStrings(JSON.parse(text))) : text;
}

function cleanStrings(value: unknown): unknown {
  if (typeof value === "string") return value.replaceAll("\0", "\ufffd").toWellFormed();
  if (Array.isArray(value)) return value.map(cleanStrings);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [cleanStrings(key), cleanStrings(item)]));
}

/** The nesting depth and the number of keys and values of a JSON text, without parsing it. */
function sizeOf(text: string): { depth: number; keys: number; values: number } {
  let level = 0;
  let depth = 0;
  let keys = 0;
  let values = 1;
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

/** Whether `value` is a JSON object. Arrays and null are not. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
