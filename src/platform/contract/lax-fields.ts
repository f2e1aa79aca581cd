import { z } from "@hono/zod-openapi";
import { microsecondsOf } from "../lib/times.ts";
import {
  choiceMessage,
  datetimeError,
  datetimeMessage,
  maxMessage,
  minMessage,
  normalizeUuid,
  type PydanticMessage,
  uuidMessage,
} from "./pydantic-messages.ts";

// Fields with the lax validation of FastAPI, which also accepts strings for numbers and booleans. Results and error messages were compared
// with those of pydantic 2.13.

class Invalid {
  readonly message: PydanticMessage;

  constructor(...message: PydanticMessage) {
    this.message = message;
  }
}

/** A missing value is refused unless the field has a default or is optional. */
function converted<T>(read: (value: unknown) => T | Invalid) {
  return z.unknown().transform((input, context): T => {
    if (input === undefined) {
      context.issues.push({ code: "invalid_type", expected: "nonoptional", input });
      return z.NEVER;
    }
    const result = read(input);
    if (!(result instanceof Invalid)) return result;
    const [type, message, ctx] = result.message;
    context.issues.push({ code: "custom", input, message, params: { type, ctx } });
    return z.NEVER;
  });
}

export const laxInt = ({ ge = Number.MIN_SAFE_INTEGER, le = Number.MAX_SAFE_INTEGER }: { ge?: number; le?: number }) =>
  converted((value) => {
    const integer = parseInteger(value);
    if (integer instanceof Invalid) return integer;
    if (integer < ge) return new Invalid(...minMessage(ge));
    if (integer > le) return new Invalid(...maxMessage(le));
    return integer;
  }).openapi({
    type: "integer",
    ...(ge !== Number.MIN_SAFE_INTEGER && { minimum: ge }),
    ...(le !== Number.MAX_SAFE_INTEGER && { maximum: le }),
  });

const INTEGER = /^\s*[+-]?\d+(_\d+)*(\.0+)?\s*$/;

function parseInteger(value: unknown): number | Invalid {
  if (typeof value === "boolean") return Number(value);
  if (typeof value === "string") {
    if (INTEGER.test(value)) return safeInteger(Number(value.replaceAll("_", "")));
    return new Invalid("int_parsing", "Input should be a valid integer, unable to parse string as an integer");
  }
  if (typeof value !== "number") return new Invalid("int_type", "Input should be a valid integer");
  if (!Number.isFinite(value)) return new Invalid("finite_number", "Input should be a finite number");
  if (Number.isInteger(value)) return safeInteger(value);
  return new Invalid("int_from_float", "Input should be a valid integer, got a number with a fractional part");
}

const safeInteger = (integer: number): number | Invalid =>
  Number.isSafeInteger(integer)
    ? integer
    : new Invalid("int_parsing_size", "Unable to parse input string as an integer, exceeded maximum size");

const TRUE = new Set<unknown>(["1", "t", "true", "y", "yes", "on", 1]);
const FALSE = new Set<unknown>(["0", "f", "false", "n", "no", "off", 0]);

export const laxBoolean = converted((value) => {
  if (typeof value === "boolean") return value;
  const word = typeof value === "string" ? value.toLowerCase() : value;
  if (TRUE.has(word)) return true;
  if (FALSE.has(word)) return false;
  return typeof value === "string" || Number.isInteger(value)
    ? new Invalid("bool_parsing", "Input should be a valid boolean, unable to interpret input")
    : new Invalid("bool_type", "Input should be a valid boolean");
}).openapi({ type: "boolean" });

/** A UUID in any format that FastAPI accepts. The result is lower case with hyphens. */
export const laxUuid = converted((value) => {
  if (typeof value !== "string") return new Invalid("uuid_type", "UUID input should be a string, bytes or UUID object");
  return normalizeUuid(value) ?? new Invalid(...uuidMessage(value));
}).openapi({ type: "string", format: "uuid" });

function choice<const T extends string>(type: "enum" | "literal_error", values: readonly T[]) {
  return converted(
    (value) => values.find((item) => item === value) ?? new Invalid(...choiceMessage(type, values)),
  ).openapi({ type: "string", enum: [...values] });
}

export const literal = <const T extends string>(values: readonly T[]) => choice("literal_error", values);

/** One of several strings, with the error of a Python Enum. {@link literal} has the error of a Python Literal. */
export const oneOf = <const T extends string>(values: readonly T[]) => choice("enum", values);

export const laxNumber = ({ ge, le }: { ge: number; le: number }) =>
  converted((value) => {
    const given = typeof value === "string" ? parseNumber(value) : value;
    if (given === undefined)
      return new Invalid("float_parsing", "Input should be a valid number, unable to parse string as a number");
    if (typeof given !== "number" && typeof given !== "boolean")
      return new Invalid("float_type", "Input should be a valid number");
    const number = Number(given);
    if (!(number >= ge)) return new Invalid(...minMessage(ge));
    if (!(number <= le)) return new Invalid(...maxMessage(le));
    return number;
  }).openapi({ type: "number", minimum: ge, maximum: le });

const parseNumber = (text: string): number | undefined =>
  text.trim() === "" || Number.isNaN(Number(text)) ? undefined : Number(text);

/** Unix timestamps above this value are in milliseconds, others in seconds. */
const MAX_SECONDS = 2e10;
const MAX_TIME_MS = Date.UTC(9999, 11, 31);

/** An ISO 8601 time, or seconds or milliseconds since the epoch. The result is an integer number of milliseconds. */
export const laxTime = converted((value) => {
  const number = typeof value === "string" ? parseNumber(value) : value;
  if (typeof number === "number") {
    const ms = Math.floor(Math.abs(number) > MAX_SECONDS ? number : number * 1000);
    if (Math.abs(ms) <= MAX_TIME_MS) return ms;
    return new Invalid(...datetimeMessage("dates after 9999 are not supported as unix timestamps"));
  }
  if (typeof value !== "string") return new Invalid("datetime_type", "Input should be a valid datetime");
  const us = microsecondsOf(value);
  if (us !== undefined) return Math.floor(us / 1000);
  return new Invalid(...datetimeMessage(datetimeError(value)));
}).openapi({ type: "string", format: "date-time" });
