import type { z } from "@hono/zod-openapi";

// Error types and messages of pydantic 2.13, which clients of FastAPI services read and compare.

/** The error type, the message, and the values that the message contains. */
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

/** The message for an issue of zod that was reported with `reportInput`. */
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
      // To zod, a boolean in a query string is a choice of words.
      if ((issue as { expected?: string }).expected === "stringbool")
        return ["bool_parsing", "Input should be a valid boolean, unable to interpret input"];
      return choiceMessage("enum", issue.values);
    case "too_small":
      return tooSmall(issue, Number(issue.minimum));
    case "too_big":
      return tooBig(issue, Number(issue.maximum));
    case "custom":
      // The schemas of lax-fields.ts set the message themselves.
      if (issue.params?.type) return [issue.params.type, issue.message, issue.params.ctx];
      return ["value_error", `Value error, ${issue.message}`];
    default:
      return ["value_error", `Value error, ${issue.message}`];
  }
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

/** @param type `enum` for one of several named values, `literal_error` for one of several strings */
export function choiceMessage(type: "enum" | "literal_error", values: readonly unknown[]): PydanticMessage {
  const quoted = values.map((value) => (typeof value === "string" ? `'${value}'` : String(value)));
  const last = quoted.pop();
  const expected = quoted.length === 0 ? String(last) : `${quoted.join(", ")} or ${last}`;
  return [type, `Input should be ${expected}`, { expected }];
}

interface BoundedIssue {
  origin: string;
  inclusive?: boolean | undefined;
  input?: unknown;
}

function tooSmall({ origin, inclusive, input }: BoundedIssue, min: number): PydanticMessage {
  if (origin === "string")
    return ["string_too_short", `String should have at least ${count(min, "character")}`, { min_length: min }];
  if (origin === "array") {
    const actual_length = (input as unknown[]).length;
    const msg = `List should have at least ${count(min, "item")} after validation, not ${actual_length}`;
    return ["too_short", msg, { field_type: "List", min_length: min, actual_length }];
  }
  return inclusive === false ? ["greater_than", `Input should be greater than ${min}`, { gt: min }] : minMessage(min);
}

function tooBig({ origin, inclusive, input }: BoundedIssue, max: number): PydanticMessage {
  if (origin === "string")
    return ["string_too_long", `String should have at most ${count(max, "character")}`, { max_length: max }];
  if (origin === "array") {
    const actual_length = (input as unknown[]).length;
    const msg = `List should have at most ${count(max, "item")} after validation, not ${actual_length}`;
    return ["too_long", msg, { field_type: "List", max_length: max, actual_length }];
  }
  return inclusive === false ? ["less_than", `Input should be less than ${max}`, { lt: max }] : maxMessage(max);
}

export const minMessage = (ge: number): PydanticMessage => [
  "greater_than_equal",
  `Input should be greater than or equal to ${ge}`,
  { ge },
];

export const maxMessage = (le: number): PydanticMessage => [
  "less_than_equal",
  `Input should be less than or equal to ${le}`,
  { le },
];

const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? "" : "s"}`;

/** Why a string is not a `YYYY-MM-DD` date or a longer timestamp. */
export function datetimeError(text: string): string {
  if (text.length < 10) return "input is too short";
  if (!/^\d{4}/.test(text)) return "invalid character in year";
  if (text[4] !== "-") return "invalid date separator, expected `-`";
  if (!/^\d\d$/.test(text.slice(5, 7))) return "invalid character in month";
  if (text[7] !== "-") return "invalid date separator, expected `-`";
  if (!/^\d\d$/.test(text.slice(8, 10))) return "invalid character in day";
  const [year, month, day] = [text.slice(0, 4), text.slice(5, 7), text.slice(8, 10)].map(Number) as [
    number,
    number,
    number,
  ];
  if (month < 1 || month > 12) return "month value is outside expected range of 1-12";
  if (day < 1 || day > daysIn(year, month)) return "day value is outside expected range";
  return "unexpected extra characters at the end of the input";
}

const daysIn = (year: number, month: number): number => new Date(Date.UTC(year, month, 0)).getUTCDate();

const UUID_GROUP_LENGTHS = [8, 4, 4, 4, 12];
/** Where the last group of a UUID starts. */
const LAST_GROUP_START = 24;
const UUID_URN = "urn:uuid:";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Removes braces or `urn:uuid:`, which FastAPI accepts around a UUID. */
function unwrapUuid(text: string): { digits: string; offset: number } {
  if (text.startsWith("{") && text.endsWith("}") && text.length > 1) return { digits: text.slice(1, -1), offset: 1 };
  if (text.startsWith(UUID_URN)) return { digits: text.slice(UUID_URN.length), offset: UUID_URN.length };
  return { digits: text, offset: 0 };
}

/** The UUID in lower case with hyphens; undefined if the string is not a UUID. Hyphens are optional outside braces and URNs only. */
export function normalizeUuid(text: string): string | undefined {
  const { digits, offset } = unwrapUuid(text);
  const hyphenated = offset === 0 ? digits.replace(/^(\w{8})(\w{4})(\w{4})(\w{4})(\w{12})$/, "$1-$2-$3-$4-$5") : digits;
  const id = hyphenated.toLowerCase();
  return UUID.test(id) ? id : undefined;
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
