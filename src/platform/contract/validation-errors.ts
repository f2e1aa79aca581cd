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

export const invalidResponse = jsonResponse(
  z.object({ detail: z.array(validationError) }).openapi("HTTPValidationError"),
  "The request is invalid. Each error identifies the invalid field.",
);

type Issue = z.core.$ZodIssue;
type Path = (string | number)[];

/**
 * Converts validation issues to FastAPI's format. The value must have been parsed with `reportInput`.
 *
 * @param value the validated value; undefined for path, query and headers, so that the input of a missing field is null
 * @param loc the location of the value, such as `["body", "results", 3]`
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

function parentOf(value: unknown, path: Path): unknown {
  if (path.length === 0) return undefined;
  return path.slice(0, -1).reduce<unknown>((within, key) => (within as Record<string, unknown>)?.[key], value);
}

/** Replaces the single issue that zod reports for a nullable value with the issues of its invalid fields. */
export const exactIssues = (issues: readonly Issue[], outer: Path = []): { issue: Issue; path: Path }[] =>
  issues.flatMap((issue) => {
    const path = [...outer, ...(issue.path as Path)];
    if (issue.code !== "invalid_union") return [{ issue, path }];
    // A nullable value is a union of two branches: the value and null.
    const branch = issue.errors.find((errors) => errors.length > 0) ?? [];
    const useBranch = issue.errors.length <= 2 && branch.length > 0 && !hasOwnMessage(issue, branch);
    return useBranch ? exactIssues(branch, path) : [{ issue, path }];
  });

/** Whether a union has its own message instead of the message of a branch (see `nullable`). */
const hasOwnMessage = (issue: Issue, [first]: readonly Issue[]): boolean =>
  issue.message.startsWith("must be ") && issue.message !== first?.message;

/** Longer values are not returned to the caller. */
const MAX_INPUT_CHARS = 1000;

/** Values of these fields are never returned, neither alone nor within an object. */
const SECRET_FIELDS = new Set(["access_token", "refresh_token", "client_secret", "secrets"]);

/** The text that pydantic shows instead of a secret. */
const MASK = "**********";

const isSecretField = (name: string | number | undefined): boolean => SECRET_FIELDS.has(String(name));

/** Returns a copy of a value with masked secrets; undefined if the value exceeds {@link MAX_INPUT_CHARS}, at which copying stops. */
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
