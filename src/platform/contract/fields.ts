import { z } from "@hono/zod-openapi";
import { whyNotSearchable } from "./searchable.ts";

/** Any UUID, of any version and variant. Lower-cased, because ids are compared as text. */
export const uuid = z.guid("must be a UUID").toLowerCase().openapi({ format: "uuid" });

/** Whether a value is a JSON object: no array, and not null. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A JSON object of any content; arrays are refused. Not a record, which would look at each of 100,000 keys again. */
export const jsonObject = z
  .custom<Record<string, unknown>>()
  .superRefine((input, context) => {
    if (!isObject(input)) context.addIssue({ code: "invalid_type", expected: "record", input });
  })
  .openapi({ type: "object", additionalProperties: {} });

/** Metadata that can be searched, or what a search looks for in it. */
export const searchable = jsonObject.superRefine((object, context) => {
  if (!isObject(object)) return; // said already
  const reason = whyNotSearchable(object);
  if (reason) context.addIssue({ code: "custom", message: reason, input: object });
});

/** A point in time, ISO 8601 with an offset. The server writes `+00:00`. */
export const timestamp = z.iso.datetime({ offset: true }).openapi({ example: "2026-01-31T12:00:00.000+00:00" });

/** The id of an assistant, or the name of a graph, which stands for that graph's default assistant. */
export const assistantId = z
  .string()
  .min(1)
  .max(500)
  .openapi({ description: "The UUID of an assistant, or the name of a graph for its default assistant." });

/** Path of everything that belongs to one thread. Other than UUIDs are 422. */
export const threadParams = z.object({ thread_id: uuid });

/** The name of a deployed graph. */
export const graphId = z.string().min(1).max(500);

/** The id of a checkpoint. Opaque: graphs make them (time-ordered UUIDs), callers only hand them back. */
export const checkpointId = z.string().min(1).max(500);

/**
 * `schema` or null. Not `.nullable()`, because the document would then call a named schema itself nullable,
 * wherever it is used. A failure says what is wrong with the value, whose places `exactIssues` finds.
 */
export function nullable<T extends z.ZodType>(schema: T): z.ZodType<z.output<T> | null, z.input<T> | null> {
  if (schema.safeParse(null).success) return schema as never; // it says so itself
  return z.union([schema, z.null()], {
    error: (issue) => {
      return (issue as { errors?: z.core.$ZodIssue[][] }).errors?.[0]?.[0]?.message;
    },
  });
}

/** A field that may be missing. `null` counts as missing, since Python clients send it for "not set". */
export function optional<T extends z.ZodType>(schema: T) {
  return nullable(schema)
    .transform((value) => (value === null ? undefined : value) as z.output<T> | undefined)
    .optional();
}

/** Like {@link optional}, but a missing field or `null` reads as `value`. */
export function withDefault<T extends z.ZodType>(schema: T, value: z.output<T>) {
  return nullable(schema)
    .transform((given) => (given === null ? structuredClone(value) : given) as z.output<T>)
    .default(value as never);
}

const TRUE = ["true", "1", "yes"];
const FALSE = ["false", "0", "no"];

/** A boolean in a query string: 1/0, true/false, yes/no in any case. Anything else is an error, never a silent `true`. */
export const queryBoolean = z.stringbool({ truthy: TRUE, falsy: FALSE }).openapi({ type: "boolean" });

/** A {@link queryBoolean} that is false when it is missing. */
export const queryFlag = (description: string) => queryBoolean.default(false).openapi({ default: false, description });

/** `cancel_on_disconnect` of a query: a {@link queryBoolean} that also takes the words `cancel` and `continue`. */
export const queryCancel = z
  .stringbool({ truthy: [...TRUE, "cancel"], falsy: [...FALSE, "continue"] })
  .openapi({ type: "boolean" });

/** A whole number in a query string, within `minimum` and `maximum` inclusive. */
export function queryInt(minimum: number, maximum: number) {
  return z
    .string()
    .regex(/^-?\d{1,15}$/, "must be a whole number")
    .transform(Number)
    .pipe(z.number().min(minimum).max(maximum))
    .openapi({ type: "integer", minimum, maximum });
}

/**
 * A list that may come as one value, as repeated query keys, or as one string that holds a JSON list.
 * Always reads as an array.
 */
export function repeated<T extends z.ZodType>(schema: T) {
  return z.preprocess(asList, z.array(schema));
}

function asList(value: unknown): unknown {
  if (Array.isArray(value)) return value;
  if (typeof value !== "string" || !value.startsWith("[")) return [value];
  try {
    return JSON.parse(value);
  } catch {
    return [value]; // not JSON after all: the schema names what it expected
  }
}

/** Names of the record fields to answer with; an unknown name is an error. */
export function selectOf<const F extends readonly string[]>(fields: F) {
  return repeated(z.enum(fields)).openapi({ description: "Answer with these fields only." });
}

const MAX_LIMIT = 1000;
const MAX_OFFSET = 1_000_000_000; // fits the 32-bit integers of every database

/** Page size in a body: 1 to 1000, default 10. */
export const limit = withDefault(z.int().min(1).max(MAX_LIMIT), 10);

/** Number of records to skip, in a body: from 0, default 0. */
export const offset = withDefault(z.int().min(0).max(MAX_OFFSET), 0);

/** {@link limit} in a query string. */
export const queryLimit = queryInt(1, MAX_LIMIT).default(10).openapi({ default: 10 });

/** {@link offset} in a query string. */
export const queryOffset = queryInt(0, MAX_OFFSET).default(0).openapi({ default: 0 });

/** Direction of a sorted list: newest (greatest) first unless asked otherwise. */
export const sortOrder = withDefault(z.enum(["asc", "desc"]), "desc");

/** Body of every error of the agent server, also of a failed validation. */
export const errorBody = z.object({ detail: z.string() }).openapi("Error");

const MEANING = {
  400: "The thread cannot do this in its present form.",
  404: "No such record, or it belongs to somebody else.",
  409: "The present state of the record forbids this.",
  413: "The body is too large.",
  422: "The request does not match this contract.",
  500: "The server is not healthy.",
} as const;

/** The `responses` of a route for these error codes; all have the same body. */
export function errorResponses<C extends keyof typeof MEANING>(...codes: C[]) {
  const entries = codes.map((code) => [code, jsonResponse(errorBody, MEANING[code])]);
  return Object.fromEntries(entries) as Record<C, ReturnType<typeof jsonResponse<typeof errorBody>>>;
}

/** A response with a JSON body. */
export function jsonResponse<T extends z.ZodType>(schema: T, description: string) {
  return { description, content: { "application/json": { schema } } };
}

/** A request's JSON body. Required, but a request without body and content type reads as `{}`. */
export function jsonBody<T extends z.ZodType>(schema: T) {
  return { required: true, content: { "application/json": { schema } } };
}

/** A response of server-sent events. It starts only once the run is accepted; before that, errors are JSON. */
export function eventStream(description: string) {
  return { description, content: { "text/event-stream": { schema: z.string() } } };
}

/** Response headers for the document: name to meaning. */
export function responseHeaders(meanings: Record<string, string>) {
  const entries = Object.entries(meanings);
  const schema = { type: "string" as const };
  return Object.fromEntries(entries.map(([name, description]) => [name, { description, schema }]));
}

/** Headers of searches. Clients page on `X-Pagination-Next` alone, so it must be absent on the last page. */
export const paginationHeaders = responseHeaders({
  "X-Pagination-Total": "Records seen so far, plus one if more may follow.",
  "X-Pagination-Next": "Offset of the next page; absent on the last one.",
});
