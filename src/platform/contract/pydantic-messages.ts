import type { z } from "@hono/zod-openapi";
import { isUuid } from "../lib/ids.ts";

// Error types and error messages of pydantic 2.13. Clients of FastAPI services may match them.

/** `ctx` has the values that the message contains. */
export type PydanticMessage = [type: string, msg: string, ctx?: Record<string, unknown>];

const TYPES: Record<string, PydanticMessage> = {
  string: ["string_type", "Input should be a valid string"],
  number: ["float_type", "Input should be a valid number"],
  int: ["int_from_float", "Input should be a valid integer, got a number with a fractional part"],
  boolean: ["bool_type", "Input should be a valid boolean"],
  record: ["dict_type", "Input should be a valid dictionary"],
  object: ["model_attributes_type", "Input should be a valid dictionary or object to extract fields from"],
  array: ["list_type", "Input should be a valid list"],
};

/** Returns the message for a zod issue. The value must have been parsed with `reportInput`. */
export function messageForIssue(issue: z.core.$ZodIssue): PydanticMessage {
  switch (issue.code) {
    case "invalid_type":
      if (issue.input === undefined) return ["missing", "Field required"];
      return TYPES[issue.expected] ?? ["value_error", issue.message];
    case "invalid_format":
      if (issue.format === "guid" || issue.format === "uuid") return uuidMessage(String(issue.input));
      if (issue.format === "datetime") return datetimeMessage(datetimeError(String(issue.input)));
      return ["value_error", issue.message];
    case "invalid_value":
      // zod reports an invalid boolean in a query string as an invalid choice.
      if ((issue as { expected?: string }).expected === "stringbool")
        return ["bool_parsing", "Input should be a valid boolean, unable to interpret input"];
      return choiceMessage("enum", issue.values);
    case "too_small": {
      const min = Number(issue.minimum);
      const greater = issue.inclusive === false ? bound("greater_than", "greater than", "gt", min) : minMessage(min);
      return lengthMessage(issue, "min_length", min) ?? greater;
    }
    case "too_big": {
      const max = Number(issue.maximum);
      const less = issue.inclusive === false ? bound("less_than", "less than", "lt", max) : maxMessage(max);
      return lengthMessage(issue, "max_length", max) ?? less;
    }
    case "custom":
      // The issues of lax-fields.ts contain their error type.
      if (issue.params?.type) return [issue.params.type, issue.message, issue.params.ctx];
  }
  return ["value_error", `Value error, ${issue.message}`];
}

export function uuidMessage(text: string): PydanticMessage {
  const error = uuidError(text);
  return ["uuid_parsing", `Input should be a valid UUID, ${error}`, { error }];
}

export const datetimeMessage = (error: string): PydanticMessage => [
  "datetime_from_date_parsing",
  `Input should be a valid datetime or date, ${error}`,
  { error },
];

/** @param type `enum` is the error of a Python Enum, `literal_error` that of a Python Literal */
export function choiceMessage(type: "enum" | "literal_error", values: readonly unknown[]): PydanticMessage {
  const quoted = values.map((value) => (typeof value === "string" ? `'${value}'` : String(value)));
  const last = quoted.pop();
  const expected = quoted.length === 0 ? String(last) : `${quoted.join(", ")} or ${last}`;
  return [type, `Input should be ${expected}`, { expected }];
}

/** Returns the message for the length of a string or list; undefined for other values. */
function lengthMessage(
  { origin, input }: { origin: string; input?: unknown },
  key: "min_length" | "max_length",
  limit: number,
): PydanticMessage | undefined {
  const [words, adjective] = key === "min_length" ? ["at least", "short"] : ["at most", "long"];
  if (origin === "string")
    return [`string_too_${adjective}`, `String should have ${words} ${count(limit, "character")}`, { [key]: limit }];
  if (origin !== "array") return undefined;
  const actual_length = (input as unknown[]).length;
  const msg = `List should have ${words} ${count(limit, "item")} after validation, not ${actual_length}`;
  return [`too_${adjective}`, msg, { field_type: "List", [key]: limit, actual_length }];
}

const bound = (type: string, words: string, key: string, limit: number): PydanticMessage => [
  type,
  `Input should be ${words} ${limit}`,
  { [key]: limit },
];

export const minMessage = (ge: number) => bound("greater_than_equal", "greater than or equal to", "ge", ge);
export const maxMessage = (le: number) => bound("less_than_equal", "less than or equal to", "le", le);

const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? "" : "s"}`;

/** Returns the reason why a string is neither a `YYYY-MM-DD` date nor a longer timestamp. */
export function datetimeError(text: string): string {
  if (text.length < 10) return "input is too short";
  if (!/^\d{4}/.test(text)) return "invalid character in year";
  if (text[4] !== "-") return "invalid date separator, expected `-`";
  if (!/^\d\d$/.test(text.slice(5, 7))) return "invalid character in month";
  if (text[7] !== "-") return "invalid date separator, expected `-`";
  if (!/^\d\d$/.test(text.slice(8, 10))) return "invalid character in day";
  const [month, day] = [Number(text.slice(5, 7)), Number(text.slice(8, 10))];
  if (month < 1 || month > 12) return "month value is outside expected range of 1-12";
  const days_in_month = new Date(Date.UTC(Number(text.slice(0, 4)), month, 0)).getUTCDate();
  if (day < 1 || day > days_in_month) return "day value is outside expected range";
  return "unexpected extra characters at the end of the input";
}

const UUID_GROUP_LENGTHS = [8, 4, 4, 4, 12];
/** Index at which the last group of a UUID starts. */
const LAST_GROUP_START = 24;
const UUID_URN = "urn:uuid:";

/** Removes the braces or the prefix `urn:uuid:`, which FastAPI accepts. */
function unwrapUuid(text: string): { digits: string; offset: number } {
  if (text.startsWith("{") && text.endsWith("}") && text.length > 1) return { digits: text.slice(1, -1), offset: 1 };
  if (text.startsWith(UUID_URN)) return { digits: text.slice(UUID_URN.length), offset: UUID_URN.length };
  return { digits: text, offset: 0 };
}

/** Returns a UUID in lower case with hyphens; undefined if the text is not a UUID. In braces and URNs, hyphens are required. */
export function normalizeUuid(text: string): string | undefined {
  const { digits, offset } = unwrapUuid(text);
  const hyphenated = offset === 0 ? digits.replace(/^(\w{8})(\w{4})(\w{4})(\w{4})(\w{12})$/, "$1-$2-$3-$4-$5") : digits;
  return isUuid(hyphenated) ? hyphenated.toLowerCase() : undefined;
}

function uuidError(text: string): string {
  const { digits, offset } = unwrapUuid(text);
  const invalid = /[^0-9a-fA-F-]/u.exec(digits);
  if (invalid) return `invalid character: found \`${invalid[0]}\` at ${invalid.index + offset + 1}`;
  const groups = digits.split("-");
  if (groups.length === 1 && offset === 0)
    return `invalid length: expected length 32 for simple format, found ${digits.length}`;
  if (groups.length !== UUID_GROUP_LENGTHS.length) return `invalid group count: expected 5, found ${groups.length}`;
  const wrong = groups.findIndex((group, index) => group.length !== UUID_GROUP_LENGTHS[index]);
  const found = wrong === 4 ? text.length - LAST_GROUP_START : groups[wrong]?.length;
  return `invalid group length in group ${wrong}: expected ${UUID_GROUP_LENGTHS[wrong]}, found ${found}`;
}
