import { z } from "@hono/zod-openapi";
import { microsecondsOf } from "../lib/times.ts";
import { datetimeFault } from "./datetime-fault.ts";
import { oneOfWords, uuidWords } from "./invalid-parts.ts";
import { uuidOf } from "./uuid-fault.ts";

// Fields that read what FastAPI's services read: texts that say a number or a boolean count as one, in query strings and in
// bodies. Which texts, and what is said of the others, was measured with pydantic 2.13.

/** Why a value was not taken: FastAPI's word, its sentence, and what that was made of. */
class Fault {
  readonly words: [type: string, msg: string, ctx?: Record<string, unknown>];

  constructor(...words: Fault["words"]) {
    this.words = words;
  }
}

/** A schema that reads a value by itself; a missing one is refused, unless the field has a default or is optional. */
function reading<T>(read: (value: unknown) => T | Fault) {
  return z.unknown().transform((input, context): T => {
    if (input === undefined) {
      context.issues.push({ code: "invalid_type", expected: "nonoptional", input });
      return z.NEVER;
    }
    const result = read(input);
    if (!(result instanceof Fault)) return result;
    const [type, message, ctx] = result.words;
    context.issues.push({ code: "custom", input, message, params: { type, ctx } });
    return z.NEVER;
  });
}

/** A whole number, within `ge` and `le` inclusive. */
export const laxInt = ({ ge = Number.MIN_SAFE_INTEGER, le = Number.MAX_SAFE_INTEGER }: { ge?: number; le?: number }) =>
  reading((value) => {
    const whole = intOf(value);
    if (whole instanceof Fault) return whole;
    if (whole < ge) return new Fault("greater_than_equal", `Input should be greater than or equal to ${ge}`, { ge });
    if (whole > le) return new Fault("less_than_equal", `Input should be less than or equal to ${le}`, { le });
    return whole;
  }).openapi({
    type: "integer",
    ...(ge !== Number.MIN_SAFE_INTEGER && { minimum: ge }),
    ...(le !== Number.MAX_SAFE_INTEGER && { maximum: le }),
  });

const WHOLE = /^\s*[+-]?\d+(_\d+)*(\.0+)?\s*$/;

function intOf(value: unknown): number | Fault {
  if (typeof value === "boolean") return Number(value);
  if (typeof value === "string") {
    if (WHOLE.test(value)) return sized(Number(value.replaceAll("_", "")));
    return new Fault("int_parsing", "Input should be a valid integer, unable to parse string as an integer");
  }
  if (typeof value !== "number") return new Fault("int_type", "Input should be a valid integer");
  if (!Number.isFinite(value)) return new Fault("finite_number", "Input should be a finite number");
  if (Number.isInteger(value)) return sized(value);
  return new Fault("int_from_float", "Input should be a valid integer, got a number with a fractional part");
}

const sized = (whole: number): number | Fault =>
  Number.isSafeInteger(whole)
    ? whole
    : new Fault("int_parsing_size", "Unable to parse input string as an integer, exceeded maximum size");

const TRUE = new Set<unknown>(["1", "t", "true", "y", "yes", "on", 1]);
const FALSE = new Set<unknown>(["0", "f", "false", "n", "no", "off", 0]);

export const laxBoolean = reading((value) => {
  if (typeof value === "boolean") return value;
  const word = typeof value === "string" ? value.toLowerCase() : value;
  if (TRUE.has(word)) return true;
  if (FALSE.has(word)) return false;
  return typeof value === "string" || Number.isInteger(value)
    ? new Fault("bool_parsing", "Input should be a valid boolean, unable to interpret input")
    : new Fault("bool_type", "Input should be a valid boolean");
}).openapi({ type: "boolean" });

/** A UUID in any of its spellings. Reads as lower case with dashes. */
export const laxUuid = reading((value) => {
  if (typeof value !== "string") return new Fault("uuid_type", "UUID input should be a string, bytes or UUID object");
  return uuidOf(value) ?? new Fault(...uuidWords(value));
}).openapi({ type: "string", format: "uuid" });

/** One of several texts. */
export const literal = <const T extends string>(values: readonly T[]) =>
  reading((value) => values.find((one) => one === value) ?? new Fault(...oneOfWords("literal_error", values))).openapi({
    type: "string",
    enum: [...values],
  });

/** One of several named values. */
export const oneOf = <const T extends string>(values: readonly T[]) =>
  reading((value) => values.find((one) => one === value) ?? new Fault(...oneOfWords("enum", values))).openapi({
    type: "string",
    enum: [...values],
  });

/** A number, within `ge` and `le` inclusive. */
export const laxNumber = ({ ge, le }: { ge: number; le: number }) =>
  reading((value) => {
    const given = typeof value === "string" ? numberOf(value) : value;
    if (given === undefined)
      return new Fault("float_parsing", "Input should be a valid number, unable to parse string as a number");
    if (typeof given !== "number" && typeof given !== "boolean")
      return new Fault("float_type", "Input should be a valid number");
    const number = Number(given);
    if (!(number >= ge))
      return new Fault("greater_than_equal", `Input should be greater than or equal to ${ge}`, { ge });
    if (!(number <= le)) return new Fault("less_than_equal", `Input should be less than or equal to ${le}`, { le });
    return number;
  }).openapi({ type: "number", minimum: ge, maximum: le });

const numberOf = (text: string): number | undefined =>
  text.trim() === "" || Number.isNaN(Number(text)) ? undefined : Number(text);

/** From here on a bare number is milliseconds, below it seconds. */
const FIRST_MILLISECONDS = 2e10;

/** A moment: ISO 8601, or a number of seconds or milliseconds since the epoch. Reads as whole milliseconds. */
export const laxTime = reading((value) => {
  const number = typeof value === "string" ? numberOf(value) : value;
  if (typeof number === "number") {
    const ms = Math.floor(Math.abs(number) > FIRST_MILLISECONDS ? number : number * 1000);
    return Math.abs(ms) <= LATEST_MS ? ms : timeFault("dates after 9999 are not supported as unix timestamps");
  }
  if (typeof value !== "string") return new Fault("datetime_type", "Input should be a valid datetime");
  const us = microsecondsOf(value);
  if (us !== undefined) return Math.floor(us / 1000);
  return timeFault(datetimeFault(value));
}).openapi({ type: "string", format: "date-time" });

const LATEST_MS = Date.UTC(9999, 11, 31);

const timeFault = (error: string): Fault =>
  new Fault("datetime_from_date_parsing", `Input should be a valid datetime or date, ${error}`, { error });
