import { z } from "@hono/zod-openapi";
import { nullable, optional, searchable, uuid } from "../../platform/contract/fields.ts";
import { isObject, parseUntrusted } from "../../platform/lib/json/json.ts";
import { microsecondsOf } from "../../platform/lib/times.ts";

const DASHLESS = /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/i;

/** A UUID of any version, with or without dashes (Python's `uuid4().hex`). The output is in lower case with dashes. */
export const uuidOrHex = z
  .preprocess((value) => (typeof value === "string" ? value.replace(DASHLESS, "$1-$2-$3-$4-$5") : value), uuid)
  .openapi({ type: "string", format: "uuid" });

/** One value or a list of values. */
export const oneOrMore = <T extends z.ZodType>(list: T) =>
  z.preprocess((value) => (Array.isArray(value) ? value : [value]), list);

/** An index of Postgres accepts rows of up to 2,704 bytes. */
const MAX_INDEXED_BYTES = 2_000;

/** Returns the beginning of a text that fits into an index. */
export function cutToIndex(text: string, max_chars: number): string {
  const start = text.slice(0, max_chars);
  if (start.length * 3 <= MAX_INDEXED_BYTES) return start.toWellFormed();
  const { read } = new TextEncoder().encodeInto(start, new Uint8Array(MAX_INDEXED_BYTES));
  return start.slice(0, read).toWellFormed();
}

/** The name of a record that is found by its name. */
export const indexedName = z
  .string()
  .min(1)
  .max(1000, { abort: true })
  .refine((text) => new TextEncoder().encode(text).length <= MAX_INDEXED_BYTES, {
    error: `must be at most ${MAX_INDEXED_BYTES} bytes long in UTF-8`,
  });

export const texts = oneOrMore(z.array(z.string()).max(1000));

/** Texts each of which is a condition of its own in a query. */
export const fewTexts = texts.pipe(z.array(z.string()).max(100));

/** An ISO 8601 time; the default time zone is UTC. The output is in microseconds since the epoch. */
export const time = z
  .string()
  .transform((text, context) => {
    const us = microsecondsOf(text);
    if (us !== undefined) return us;
    const message = "must be an ISO 8601 time";
    context.issues.push({ code: "invalid_format", format: "datetime", input: text, message });
    return z.NEVER;
  })
  .openapi({ type: "string", format: "date-time" });

/**
 * A version of a dataset: a tag, or a time that selects the newest version at or before it. The output is the tag or microseconds. The tag
 * `latest` is the newest version.
 */
export const asOf = z
  .string()
  .min(1)
  .transform((text) => microsecondsOf(text) ?? text)
  .openapi({
    type: "string",
    description:
      "A version tag, or an ISO 8601 time that selects the newest version of the dataset at or before that time.",
  });
export type AsOf = z.output<typeof asOf>;

export const LATEST = "latest";

/** Numbers are milliseconds. Values from 1e14 (year 5138) are read as microseconds, and values below 1e11 (March 1973) as seconds. */
const FIRST_MICROSECONDS = 1e14;
const LAST_SECONDS = 1e11;

export function microsecondsOfTime(value: string | number): number | undefined {
  if (typeof value === "string") return microsecondsOf(value);
  const factor = value >= FIRST_MICROSECONDS ? 1 : value < LAST_SECONDS ? 1e6 : 1e3;
  const us = Math.round(value * factor);
  return us >= 0 && us < 8e15 ? us : undefined;
}

/** A time as ISO 8601 text (default time zone: UTC) or as a number since the epoch. The output is in microseconds. */
export const traceTime = z
  .union([z.string(), z.number()])
  .transform((value, context) => {
    const us = microsecondsOfTime(value);
    if (us !== undefined) return us;
    context.issues.push({
      code: "custom",
      input: value,
      message: "must be an ISO 8601 time in the years 1901 to 2250, or a number of milliseconds since the epoch",
    });
    return z.NEVER;
  })
  .openapi({ description: "An ISO 8601 time, or milliseconds since the epoch." });

export const uuids = oneOrMore(z.array(uuidOrHex).max(1000));

/** A query parameter with a JSON object that the metadata of a record must contain. */
export const metadataQuery = z
  .string()
  .transform((text, context) => {
    try {
      const value = parseUntrusted(text);
      if (isObject(value)) return value;
    } catch {
      // The issue below reports invalid JSON.
    }
    context.issues.push({ code: "custom", input: text, message: "must be a JSON object" });
    return z.NEVER;
  })
  .pipe(searchable);

/** A time in a response: ISO 8601 with `+00:00` and three decimal places, or six if the time is not a whole number of milliseconds. */
export const timeText = z.string().openapi({ format: "date-time", example: "2026-01-31T12:00:00.000+00:00" });

export const nullableTime = nullable(timeText);

const cost = nullable(z.number());
const costs = { total_cost: cost, prompt_cost: cost, completion_cost: cost };
const tokens = nullable(z.int());
const details = nullable(z.record(z.string(), z.number()));

/** Tokens and costs (USD) of traces. They are null for uploaded results, which have neither. */
export const usage = {
  costs,
  tokens: { total_tokens: tokens, prompt_tokens: tokens, completion_tokens: tokens, ...costs },
  first_tokens: { first_token_p50: nullable(z.number()), first_token_p99: nullable(z.number()) },
  details: {
    prompt_token_details: details,
    completion_token_details: details,
    prompt_cost_details: details,
    completion_cost_details: details,
  },
};

/** Filter expressions by experiment id. For each of these experiments, the example must have a run that meets all expressions. */
export const experimentFilters = optional(z.record(z.string(), z.array(z.string()).max(100)));

export const idAndName = { id: uuids.optional(), name: z.string().optional(), name_contains: z.string().optional() };

/** The maximum exceeds LangSmith's 100: the official clients send any `limit` and treat a page with fewer records as the last page. */
const DEFAULT_PAGE_SIZE = 100;
export const MAX_PAGE_SIZE = 1000;

const parseInteger = (value: unknown) =>
  typeof value === "string" && /^-?\d{1,15}$/.test(value) ? Number(value) : value;

export const paging = {
  limit: z.preprocess(parseInteger, z.int().min(1).max(MAX_PAGE_SIZE)).default(DEFAULT_PAGE_SIZE),
  offset: z.preprocess(parseInteger, z.int().min(0).max(1_000_000_000)).default(0),
};

/** Rejects values of an unsupported field, because a client that sends a value expects an effect. */
export const unsupported = (isUnset: (value: unknown) => boolean, message: string) =>
  z.unknown().superRefine((input, context) => {
    if (input !== undefined && input !== null && !isUnset(input)) context.addIssue({ code: "custom", message, input });
  });

/** A field or parameter that has no effect. */
export const refused = (message: string) => optional(z.string().refine(() => false, message));

/** Filters of LangSmith that the v2 queries do not have. */
export const unsupportedFilters = {
  sem_filter: refused("is not supported: use `filter`"),
  ai_search: refused("is not supported: use `filter`"),
  min_feedback_modified_at: refused("is not supported: use `filter`"),
  max_feedback_modified_at: refused("is not supported: use `filter`"),
};
