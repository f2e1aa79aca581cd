import type { z } from "@hono/zod-openapi";
import type { InvalidPart } from "../errors.ts";

type Issue = z.core.$ZodIssue;

/** Values larger than this are not repeated to the caller. */
const MOST_INPUT_CHARS = 1000;

/**
 * What a schema found wrong, as FastAPI's validation says it: its clients read `loc` and `msg`, and know `type`. The
 * value must have been parsed with `reportInput`.
 */
export const invalidParts = (issues: readonly Issue[], loc: (string | number)[]): InvalidPart[] =>
  issues.flatMap((issue) => partsOf(issue, [...loc, ...(issue.path as (string | number)[])]));

function partsOf(issue: Issue, loc: (string | number)[]): InvalidPart[] {
  if (issue.code === "invalid_union") {
    // One branch says best what was meant: that of the value itself, where the other is null.
    const branch = issue.errors.find((errors) => errors.length > 0) ?? [];
    if (issue.errors.length <= 2 && branch.length > 0 && !isOwnWords(issue)) return invalidParts(branch, loc);
  }
  const [type, msg] = wordsFor(issue);
  const { input } = issue;
  return [{ loc, msg, type, input: isSmall(input) ? (input ?? null) : undefined }];
}

/** Whether a union has a sentence of its own, instead of one for each of its branches. */
const isOwnWords = (issue: Issue): boolean => issue.message.startsWith("must be ");

function isSmall(input: unknown): boolean {
  try {
    return (JSON.stringify(input) ?? "null").length <= MOST_INPUT_CHARS;
  } catch {
    return false;
  }
}

const TYPES: Record<string, [type: string, msg: string]> = {
  string: ["string_type", "Input should be a valid string"],
  number: ["float_type", "Input should be a valid number"],
  int: ["int_type", "Input should be a valid integer"],
  boolean: ["bool_type", "Input should be a valid boolean"],
  record: ["dict_type", "Input should be a valid dictionary"],
  object: ["model_attributes_type", "Input should be a valid dictionary or object to extract fields from"],
  array: ["list_type", "Input should be a valid list"],
};

const FORMATS: Record<string, [type: string, msg: string]> = {
  guid: ["uuid_parsing", "Input should be a valid UUID"],
  uuid: ["uuid_parsing", "Input should be a valid UUID"],
  datetime: ["datetime_from_date_parsing", "Input should be a valid datetime in ISO 8601"],
};

function wordsFor(issue: Issue): [type: string, msg: string] {
  switch (issue.code) {
    case "invalid_type":
      if (issue.input === undefined) return ["missing", "Field required"];
      return TYPES[issue.expected] ?? ["value_error", issue.message];
    case "invalid_format":
      return FORMATS[issue.format] ?? ["value_error", issue.message];
    case "invalid_value":
      return ["enum", `Input should be ${issue.values.map((value) => `'${String(value)}'`).join(" or ")}`];
    case "too_small":
      return tooSmall(issue.origin, Number(issue.minimum), issue.inclusive !== false);
    case "too_big":
      return tooBig(issue.origin, Number(issue.maximum), issue.inclusive !== false);
    default:
      return ["value_error", `Value error, ${issue.message}`];
  }
}

function tooSmall(origin: string, least: number, inclusive: boolean): [string, string] {
  if (origin === "string") return ["string_too_short", `String should have at least ${count(least, "character")}`];
  if (origin === "array") return ["too_short", `List should have at least ${count(least, "item")}`];
  return inclusive
    ? ["greater_than_equal", `Input should be greater than or equal to ${least}`]
    : ["greater_than", `Input should be greater than ${least}`];
}

function tooBig(origin: string, most: number, inclusive: boolean): [string, string] {
  if (origin === "string") return ["string_too_long", `String should have at most ${count(most, "character")}`];
  if (origin === "array") return ["too_long", `List should have at most ${count(most, "item")}`];
  return inclusive
    ? ["less_than_equal", `Input should be less than or equal to ${most}`]
    : ["less_than", `Input should be less than ${most}`];
}

const count = (n: number, word: string): string => `${n} ${word}${n === 1 ? "" : "s"}`;
