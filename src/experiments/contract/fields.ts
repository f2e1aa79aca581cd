import { z } from "@hono/zod-openapi";
import { isObject, jsonResponse, nullable, searchable, uuid } from "../../platform/contract/fields.ts";
import { invalidResponse } from "../../platform/contract/validation-error.ts";
import { microsecondsOf } from "../../platform/lib/times.ts";

const DASHLESS = /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/i;

/** A UUID of any version, also without its dashes (Python's `uuid4().hex`). Reads as lower case with dashes. */
export const looseUuid = z
  .preprocess((value) => (typeof value === "string" ? value.replace(DASHLESS, "$1-$2-$3-$4-$5") : value), uuid)
  .openapi({ type: "string", format: "uuid" });

/** One or several texts. */
export const texts = z.preprocess((value) => (Array.isArray(value) ? value : [value]), z.array(z.string()).max(1000));

/** A point in time in ISO 8601, UTC when it names no offset. Reads as microseconds since the epoch. */
export const time = z
  .string()
  .transform((text, context) => {
    const us = microsecondsOf(text);
    if (us !== undefined) return us;
    context.issues.push({
      code: "invalid_format",
      format: "datetime",
      input: text,
      message: "must be an ISO 8601 time",
    });
    return z.NEVER;
  })
  .openapi({ type: "string", format: "date-time" });

/** One or several ids. Clients write one of them as a bare text, in query strings and in bodies. */
export const uuids = z.preprocess((value) => (Array.isArray(value) ? value : [value]), z.array(looseUuid).max(1000));

/** An object, as JSON text in a query string: what must be contained in a record's metadata. */
export const metadataQuery = z
  .string()
  .transform((text, context) => {
    try {
      const value: unknown = JSON.parse(text);
      if (isObject(value)) return value;
    } catch {
      // Said below.
    }
    context.issues.push({ code: "custom", input: text, message: "must be a JSON object" });
    return z.NEVER;
  })
  .pipe(searchable);

/** A time in an answer: ISO 8601 with `+00:00`, to the microsecond where that is not zero. */
export const timeText = z.string().openapi({ format: "date-time", example: "2026-01-31T12:00:00.000+00:00" });

export const nullableTime = nullable(timeText);

const unsaidCosts = { total_cost: z.null(), prompt_cost: z.null(), completion_cost: z.null() };

/** What an upload does not say, and is null wherever it is asked for. */
export const unsaid = {
  costs: unsaidCosts,
  tokens: { total_tokens: z.null(), prompt_tokens: z.null(), completion_tokens: z.null(), ...unsaidCosts },
  first_tokens: { first_token_p50: z.null(), first_token_p99: z.null() },
};

const plainError = z.object({ detail: z.string() }).openapi("ExperimentsError");

const MEANING = {
  400: "The request cannot be understood, or not be applied to this record.",
  404: "No such record, or it belongs to somebody else.",
  409: "Something of that name or id exists.",
  413: "The body is too large.",
} as const;

/** The `responses` of a route: 422 lists its reasons, every other error is one sentence. */
export function errors<C extends keyof typeof MEANING>(...codes: C[]) {
  const entries = codes.map((code) => [code, jsonResponse(plainError, MEANING[code])]);
  return {
    ...(Object.fromEntries(entries) as Record<C, ReturnType<typeof jsonResponse<typeof plainError>>>),
    422: invalidResponse,
  };
}

/**
 * Records in a page. The official clients ask for 100, take a shorter page for the last, and hand on a larger `limit` of
 * their caller: so more is allowed than the original's 100.
 */
const PAGE = 100;
const MAX_PAGE = 1000;

const whole = (value: unknown) => (typeof value === "string" && /^-?\d{1,15}$/.test(value) ? Number(value) : value);

/** `limit` and `offset` of a query string. */
export const paging = {
  limit: z.preprocess(whole, z.int().min(1).max(MAX_PAGE)).default(PAGE),
  offset: z.preprocess(whole, z.int().min(0).max(1_000_000_000)).default(0),
};
