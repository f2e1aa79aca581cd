import { z } from "@hono/zod-openapi";
import type { InvalidPart } from "../errors.ts";
import { jsonResponse } from "./fields.ts";
import { messageForIssue } from "./pydantic-messages.ts";

/** One reason for a refused request, in FastAPI's format. Clients read `loc` and `msg`. */
const validationError = z
  .object({
    loc: z.array(z.union([z.string(), z.int()])),
    msg: z.string(),
    type: z.string(),
    input: z.unknown().optional(),
    ctx: z.record(z.string(), z.unknown()).optional(),
  })
  .openapi("ValidationError");

/** A 422 response that lists its reasons. */
export const invalidResponse = jsonResponse(
  z.object({ detail: z.array(validationError) }).openapi("HTTPValidationError"),
  "The request does not match this contract. Each reason names the field that it concerns.",
);

type Issue = z.core.$ZodIssue;
type Path = (string | number)[];

/**
 * The validation issues of `value` in FastAPI's format. The value must have been parsed with `reportInput`.
 *
 * @param value the parsed value; undefined for path, query and headers, whose missing fields are reported with input null
 * @param loc the source of the value, such as `["body", "results", 3]`
 */
export const invalidParts = (issues: readonly Issue[], value: unknown, loc: Path): InvalidPart[] =>
  exactIssues(issues).map(({ issue, path }) => {
    const [type, msg, ctx] = messageForIssue(issue);
    const secret = path.slice(0, -1).find(isSecretField);
    // The input of a missing field is the object that should contain it.
    const input =
      type === "missing"
        ? redactedInput(parentOf(value, path), secret)
        : redactedInput(issue.input, secret ?? path.at(-1));
    return { type, loc: [...loc, ...path], msg, ...(input !== undefined && { input }), ...(ctx && { ctx }) };
  });

const parentOf = (value: unknown, path: Path): unknown =>
  path.length === 0
    ? undefined
    : path.slice(0, -1).reduce<unknown>((within, key) => (within as Record<string, unknown>)?.[key], value);

/** Lists issues by field. zod reports one issue for a whole nullable value; here each invalid field in it has its own. */
export const exactIssues = (issues: readonly Issue[], outer: Path = []): { issue: Issue; path: Path }[] =>
  issues.flatMap((issue) => {
    const path = [...outer, ...(issue.path as Path)];
    if (issue.code !== "invalid_union") return [{ issue, path }];
    // Of a value and null, the branch of the value has the relevant issues.
    const branch = issue.errors.find((errors) => errors.length > 0) ?? [];
    const useBranch = issue.errors.length <= 2 && branch.length > 0 && !hasOwnMessage(issue, branch);
    return useBranch ? exactIssues(branch, path) : [{ issue, path }];
  });

/** Whether a union has its own message instead of the message of a branch (see `nullable`). */
const hasOwnMessage = (issue: Issue, [first]: readonly Issue[]): boolean =>
  issue.message.startsWith("must be ") && issue.message !== first?.message;

/** Values whose JSON is longer than this are not repeated to the caller. */
const MAX_INPUT_CHARS = 1000;

/** Fields that contain a secret. Their values are never repeated, neither alone nor within an object. */
const SECRET_FIELDS = new Set(["access_token", "refresh_token", "client_secret", "secrets"]);

/** pydantic masks its secrets in the same way. */
const MASK = "**********";

const isSecretField = (name: string | number | undefined): boolean => SECRET_FIELDS.has(String(name));

/** A copy of an input value with its secrets masked; undefined if it is large. Reads no more of it than the limit requires. */
export function redactedInput(value: unknown, field?: string | number): unknown {
  const budget = { chars: MAX_INPUT_CHARS };
  const copy = redactedCopy(value, field, budget);
  return budget.chars < 0 ? undefined : copy;
}

function redactedCopy(value: unknown, field: string | number | undefined, budget: { chars: number }): unknown {
  if (isSecretField(field) && value !== null && value !== undefined) return MASK;
  if (typeof value !== "object" || value === null) {
    budget.chars -= typeof value === "string" ? value.length + 2 : String(value).length;
    return value === undefined ? null : value;
  }
  budget.chars -= 2;
  if (Array.isArray(value)) {
    const items: unknown[] = [];
    for (const item of value) {
      budget.chars--;
      if (budget.chars < 0) break;
      items.push(redactedCopy(item, undefined, budget));
    }
    return items;
  }
  const members: [string, unknown][] = [];
  for (const [name, item] of Object.entries(value)) {
    budget.chars -= name.length + 4;
    if (budget.chars < 0) break;
    members.push([name, redactedCopy(item, name, budget)]);
  }
  return Object.fromEntries(members);
}
