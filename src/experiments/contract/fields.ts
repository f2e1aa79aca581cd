import { z } from "@hono/zod-openapi";
import { jsonResponse, nullable, searchable, uuid } from "../../platform/contract/fields.ts";
import { invalidResponse } from "../../platform/contract/validation-errors.ts";
import { isObject } from "../../platform/lib/json/json.ts";
import { microsecondsOf } from "../../platform/lib/times.ts";

const DASHLESS = /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/i;

/** A UUID of any version, with or without dashes (Python's `uuid4().hex`). The output is in lower case with dashes. */
export const uuidOrHex = z
  .preprocess((value) => (typeof value === "string" ? value.replace(DASHLESS, "$1-$2-$3-$4-$5") : value), uuid)
  .openapi({ type: "string", format: "uuid" });

/** One text or a list of texts. */
export const texts = z.preprocess((value) => (Array.isArray(value) ? value : [value]), z.array(z.string()).max(1000));

/** A time in ISO 8601, in UTC when it has no offset. The output is in microseconds since the epoch. */
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

/** One id or a list of ids, in query strings and in bodies. */
export const uuids = z.preprocess((value) => (Array.isArray(value) ? value : [value]), z.array(uuidOrHex).max(1000));

/** A JSON object in a query string that the metadata of a record must contain. */
export const metadataQuery = z
  .string()
  .transform((text, context) => {
    try {
      const value: unknown = JSON.parse(text);
      if (isObject(value)) return value;
    } catch {
      // The issue below reports it.
    }
    context.issues.push({ code: "custom", input: text, message: "must be a JSON object" });
    return z.NEVER;
  })
  .pipe(searchable);

/** A time in a response: ISO 8601 with `+00:00`, in milliseconds, or in microseconds when these are not zero. */
export const timeText = z.string().openapi({ format: "date-time", example: "2026-01-31T12:00:00.000+00:00" });

export const nullableTime = nullable(timeText);

const unrecordedCosts = { total_cost: z.null(), prompt_cost: z.null(), completion_cost: z.null() };

/** Fields of the original that uploads do not record; always null. */
export const unrecorded = {
  costs: unrecordedCosts,
  tokens: { total_tokens: z.null(), prompt_tokens: z.null(), completion_tokens: z.null(), ...unrecordedCosts },
  first_tokens: { first_token_p50: z.null(), first_token_p99: z.null() },
};

const plainError = z.object({ detail: z.string() }).openapi("ExperimentsError");

const DESCRIPTIONS = {
  400: "The request is invalid for this record.",
  404: "The record does not exist in this workspace.",
  409: "The name or the id is taken.",
  413: "The request body is too large.",
} as const;

/** The error `responses` of a route: 422 lists every reason, other errors have one sentence. */
export function errors<C extends keyof typeof DESCRIPTIONS>(...codes: C[]) {
  const entries = codes.map((code) => [code, jsonResponse(plainError, DESCRIPTIONS[code])]);
  return {
    ...(Object.fromEntries(entries) as Record<C, ReturnType<typeof jsonResponse<typeof plainError>>>),
    422: invalidResponse,
  };
}

/**
 * The official clients request pages of 100, treat a shorter page as the last, and forward a larger `limit` of their
 * caller: therefore the maximum is higher than the original's 100.
 */
const DEFAULT_PAGE_SIZE = 100;
const MAX_PAGE_SIZE = 1000;

const parseInteger = (value: unknown) =>
  typeof value === "string" && /^-?\d{1,15}$/.test(value) ? Number(value) : value;

/** `limit` and `offset` of a query string. */
export const paging = {
  limit: z.preprocess(parseInteger, z.int().min(1).max(MAX_PAGE_SIZE)).default(DEFAULT_PAGE_SIZE),
  offset: z.preprocess(parseInteger, z.int().min(0).max(1_000_000_000)).default(0),
};
