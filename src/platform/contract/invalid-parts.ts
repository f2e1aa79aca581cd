import type { z } from "@hono/zod-openapi";
import type { InvalidPart } from "../errors.ts";
import { datetimeFault } from "./datetime-fault.ts";
import { echoOf, isSecretField } from "./echo.ts";
import { uuidFault } from "./uuid-fault.ts";

type Issue = z.core.$ZodIssue;
type Path = (string | number)[];

/** What was checked: the value, and where it came from (`["body", "results", 3]`). */
interface Checked {
  value: unknown;
  loc: Path;
}

/** FastAPI's word, its sentence, and what the sentence was made of. */
type Words = [type: string, msg: string, ctx?: Record<string, unknown>];

/**
 * What a schema found wrong with `value`, as FastAPI's validation says it: its clients read `loc` and `msg`, and know `type`.
 * The value must have been parsed with `reportInput`.
 *
 * @param value what was parsed; undefined for path, query and headers, of which a missing one is told with the input null
 */
export const invalidParts = (issues: readonly Issue[], value: unknown, loc: Path): InvalidPart[] =>
  exactIssues(issues).map((exact) => part(exact, { value, loc }));

/** An issue and where it lies in what was checked. */
export interface ExactIssue {
  issue: Issue;
  path: Path;
}

/**
 * Issues by the fields that they are about. Of a value that may be null zod says one for the whole of it; here each place within it has
 * its own.
 */
export const exactIssues = (issues: readonly Issue[], outer: Path = []): ExactIssue[] =>
  issues.flatMap((issue) => {
    const path = [...outer, ...(issue.path as Path)];
    if (issue.code !== "invalid_union") return [{ issue, path }];
    // One branch says best what was meant: that of the value itself, where the other is null.
    const branch = issue.errors.find((errors) => errors.length > 0) ?? [];
    const isMeant = issue.errors.length <= 2 && branch.length > 0 && !isOwnWords(issue, branch);
    return isMeant ? exactIssues(branch, path) : [{ issue, path }];
  });

function part({ issue, path }: ExactIssue, { value, loc }: Checked): InvalidPart {
  const [type, msg, ctx] = wordsFor(issue);
  // Of a missing field the object is shown in which it is missing.
  const input =
    type === "missing" ? echoOf(enclosing(value, path), secretOf(path)) : echoOf(issue.input, fieldOf(path));
  return { type, loc: [...loc, ...path], msg, ...(input !== undefined && { input }), ...(ctx && { ctx }) };
}

/** The field of a path that holds a secret, with all that is below it. */
const secretOf = (path: Path) => path.slice(0, -1).find(isSecretField);
const fieldOf = (path: Path) => secretOf(path) ?? path.at(-1);

const enclosing = (value: unknown, path: Path): unknown =>
  path.length === 0
    ? undefined
    : path.slice(0, -1).reduce<unknown>((within, key) => (within as Record<string, unknown>)?.[key], value);

/** Whether a union has a sentence of its own, instead of that of a branch (see `nullable`). */
const isOwnWords = (issue: Issue, [first]: readonly Issue[]): boolean =>
  issue.message.startsWith("must be ") && issue.message !== first?.message;

const TYPES: Record<string, Words> = {
  string: ["string_type", "Input should be a valid string"],
  number: ["float_type", "Input should be a valid number"],
  int: ["int_from_float", "Input should be a valid integer, got a number with a fractional part"],
  boolean: ["bool_type", "Input should be a valid boolean"],
  record: ["dict_type", "Input should be a valid dictionary"],
  object: ["model_attributes_type", "Input should be a valid dictionary or object to extract fields from"],
  array: ["list_type", "Input should be a valid list"],
};

function wordsFor(issue: Issue): Words {
  switch (issue.code) {
    case "invalid_type":
      if (issue.input === undefined) return ["missing", "Field required"];
      return TYPES[issue.expected] ?? ["value_error", issue.message];
    case "invalid_format":
      return wordsForFormat(issue.format, String(issue.input), issue.message);
    case "invalid_value":
      // A boolean in a query string is a choice of words to zod.
      if ((issue as { expected?: string }).expected === "stringbool")
        return ["bool_parsing", "Input should be a valid boolean, unable to interpret input"];
      return oneOfWords("enum", issue.values);
    case "too_small":
      return tooSmall(issue, Number(issue.minimum));
    case "too_big":
      return tooBig(issue, Number(issue.maximum));
    case "custom":
      // Made by a schema of lax-fields.ts, which has its words already.
      if (issue.params?.type) return [issue.params.type, issue.message, issue.params.ctx];
      return ["value_error", `Value error, ${issue.message}`];
    default:
      return ["value_error", `Value error, ${issue.message}`];
  }
}

function wordsForFormat(format: string, text: string, message: string): Words {
  if (format === "guid" || format === "uuid") return uuidWords(text);
  if (format === "datetime") {
    const error = datetimeFault(text);
    return ["datetime_from_date_parsing", `Input should be a valid datetime or date, ${error}`, { error }];
  }
  return ["value_error", message];
}

export function uuidWords(text: string): Words {
  const error = uuidFault(text);
  return ["uuid_parsing", `Input should be a valid UUID, ${error}`, { error }];
}

/** @param type `enum` for one of several named values, `literal_error` for one of several texts */
export function oneOfWords(type: "enum" | "literal_error", values: readonly unknown[]): Words {
  const quoted = values.map((value) => (typeof value === "string" ? `'${value}'` : String(value)));
  const last = quoted.pop();
  const expected = quoted.length === 0 ? String(last) : `${quoted.join(", ")} or ${last}`;
  return [type, `Input should be ${expected}`, { expected }];
}

interface Bounded {
  origin: string;
  inclusive?: boolean | undefined;
  input?: unknown;
}

function tooSmall({ origin, inclusive, input }: Bounded, least: number): Words {
  if (origin === "string")
    return ["string_too_short", `String should have at least ${count(least, "character")}`, { min_length: least }];
  if (origin === "array") {
    const actual_length = (input as unknown[]).length;
    const msg = `List should have at least ${count(least, "item")} after validation, not ${actual_length}`;
    return ["too_short", msg, { field_type: "List", min_length: least, actual_length }];
  }
  return inclusive === false
    ? ["greater_than", `Input should be greater than ${least}`, { gt: least }]
    : ["greater_than_equal", `Input should be greater than or equal to ${least}`, { ge: least }];
}

function tooBig({ origin, inclusive, input }: Bounded, most: number): Words {
  if (origin === "string")
    return ["string_too_long", `String should have at most ${count(most, "character")}`, { max_length: most }];
  if (origin === "array") {
    const actual_length = (input as unknown[]).length;
    const msg = `List should have at most ${count(most, "item")} after validation, not ${actual_length}`;
    return ["too_long", msg, { field_type: "List", max_length: most, actual_length }];
  }
  return inclusive === false
    ? ["less_than", `Input should be less than ${most}`, { lt: most }]
    : ["less_than_equal", `Input should be less than or equal to ${most}`, { le: most }];
}

const count = (n: number, word: string): string => `${n} ${word}${n === 1 ? "" : "s"}`;
