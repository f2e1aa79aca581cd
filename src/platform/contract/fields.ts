import { z } from "@hono/zod-openapi";
import { isObject, parseUntrusted } from "../lib/json/json.ts";

/** A UUID of any version and variant, in lower case because ids are compared as text. */
export const uuid = z.guid("must be a UUID").toLowerCase().openapi({ format: "uuid" });

/** A JSON object with any content. A zod record would visit each of up to 100,000 keys again. */
export const jsonObject = z
  .custom<Record<string, unknown>>()
  .superRefine((input, context) => {
    if (!isObject(input)) context.addIssue({ code: "invalid_type", expected: "record", input });
  })
  .openapi({ type: "object", additionalProperties: {} });

/** Metadata that can be searched, or the filter of a metadata search. */
export const searchable = jsonObject.superRefine((object, context) => {
  if (!isObject(object)) return; // already reported
  const reason = unsearchableReason(object);
  if (reason) context.addIssue({ code: "custom", message: reason, input: object });
});

/** Limits of searchable metadata. A search compares the metadata of each row. */
const MAX_SEARCHABLE = { bytes: 65_536, keys: 1_000, levels: 20 };

/** Returns the reason why an object is too large for a metadata search; undefined if it is not. */
export function unsearchableReason(object: object): string | undefined {
  let keys = 0;
  const isWithin = (value: unknown, level: number): boolean => {
    if (typeof value !== "object" || value === null) return true;
    if (level > MAX_SEARCHABLE.levels) return false;
    // An array or object in an array counts like a key, because its comparison takes as long.
    keys += Array.isArray(value) ? value.filter((item) => typeof item === "object").length : Object.keys(value).length;
    return keys <= MAX_SEARCHABLE.keys && Object.values(value).every((item) => isWithin(item, level + 1));
  };
  if (!isWithin(object, 1))
    return keys > MAX_SEARCHABLE.keys
      ? `has more than ${MAX_SEARCHABLE.keys} keys in total (each object or list in a list also counts as a key)`
      : `is nested more than ${MAX_SEARCHABLE.levels} levels deep`;
  return new TextEncoder().encode(JSON.stringify(object)).length > MAX_SEARCHABLE.bytes
    ? `is larger than ${MAX_SEARCHABLE.bytes} bytes as JSON`
    : undefined;
}

/** An ISO 8601 time with an offset. */
export const timestamp = z.iso.datetime({ offset: true }).openapi({ example: "2026-01-31T12:00:00.000+00:00" });

export const assistantId = z
  .string()
  .min(1)
  .max(500)
  .openapi({ description: "The UUID of an assistant, or a graph name to select the graph's default assistant." });

export const threadParams = z.object({ thread_id: uuid });

export const graphId = z.string().min(1).max(500);

/** An opaque id. The IDs that graphs create are time-ordered UUIDs. */
export const checkpointId = z.string().min(1).max(500);

/**
 * Accepts `schema` or null. `.nullable()` would mark a named schema as nullable everywhere in the OpenAPI document. The error message is
 * that of the first issue; `exactIssues` finds the invalid fields.
 */
export function nullable<T extends z.ZodType>(schema: T): z.ZodType<z.output<T> | null, z.input<T> | null> {
  if (schema.safeParse(null).success) return schema as never; // already nullable
  return z.union([schema, z.null()], {
    error: (issue) => (issue as { errors?: z.core.$ZodIssue[][] }).errors?.[0]?.[0]?.message,
  });
}

/** A field that may be missing. Python clients send `null` for a missing field. */
export function optional<T extends z.ZodType>(schema: T) {
  return nullable(schema)
    .transform((value) => (value === null ? undefined : value) as z.output<T> | undefined)
    .optional();
}

/** Like {@link optional}, but a missing field or `null` becomes `value`. */
export function withDefault<T extends z.ZodType>(schema: T, value: z.output<T>) {
  return nullable(schema)
    .transform((given) => (given === null ? structuredClone(value) : given) as z.output<T>)
    .default(value as never);
}

/** Like {@link optional}, for a field that {@link withDefault} declares: an update leaves a missing field as it is. */
export const withoutDefault = <T extends z.ZodType>(field: z.ZodDefault<T>) =>
  z.preprocess((given) => given ?? undefined, field.removeDefault().optional()).optional();

const TRUE = ["true", "1", "yes"];
const FALSE = ["false", "0", "no"];

/** A boolean in a query string: 1/0, true/false, yes/no, case-insensitive. */
export const queryBoolean = z.stringbool({ truthy: TRUE, falsy: FALSE }).openapi({ type: "boolean" });

/** A {@link queryBoolean} with the default false. */
export const queryFlag = (description: string) => queryBoolean.default(false).openapi({ default: false, description });

/** `cancel_on_disconnect` in a query string: a {@link queryBoolean} that also accepts `cancel` and `continue`. */
export const queryCancel = z
  .stringbool({ truthy: [...TRUE, "cancel"], falsy: [...FALSE, "continue"] })
  .openapi({ type: "boolean" });

/** An integer in a query string, between `minimum` and `maximum`, both inclusive. */
export function queryInt(minimum: number, maximum: number) {
  return z
    .string()
    .regex(/^-?\d{1,15}$/, "must be a whole number")
    .transform(Number)
    .pipe(z.number().min(minimum).max(maximum))
    .openapi({ type: "integer", minimum, maximum });
}

/** A list, sent as one value, as repeated query keys, or as a string that contains a JSON list. */
export const repeated = <T extends z.ZodType>(schema: T) => z.preprocess(asList, z.array(schema));

function asList(value: unknown): unknown {
  if (Array.isArray(value)) return value;
  if (typeof value !== "string" || !value.startsWith("[")) return [value];
  try {
    return parseUntrusted(value);
  } catch {
    return [value]; // not JSON: the schema reports the expected type
  }
}

/** Names of the record fields to return. */
export const selectOf = <const F extends readonly string[]>(fields: F) =>
  repeated(z.enum(fields)).openapi({ description: "Fields to return. Default: all fields." });

const MAX_LIMIT = 1000;
const MAX_OFFSET = 1_000_000_000; // fits the 32-bit integers of every database

/** Paging in a body and in a query string. */
export const limit = withDefault(z.int().min(1).max(MAX_LIMIT), 10);
export const offset = withDefault(z.int().min(0).max(MAX_OFFSET), 0);
export const queryLimit = queryInt(1, MAX_LIMIT).default(10).openapi({ default: 10 });
export const queryOffset = queryInt(0, MAX_OFFSET).default(0).openapi({ default: 0 });

export const sortOrder = withDefault(z.enum(["asc", "desc"]), "desc");

/** The body of all errors of the agent server, including validation errors. */
export const errorBody = z.object({ detail: z.string() }).openapi("Error");

const MEANING = {
  400: "The operation is not possible with these values or in the current state.",
  404: "The record does not exist, or it belongs to another workspace or user.",
  409: "The record already exists, or its state does not permit this operation.",
  413: "The body is too large.",
  422: "The request is invalid or cannot be processed. The error states the reason and, if a field is invalid, identifies it.",
  500: "The server is not healthy.",
  502: "The project's code failed.",
} as const;

/** The error `responses` of a route. All have the same body. */
export function errorResponses<C extends keyof typeof MEANING>(...codes: C[]) {
  const entries = codes.map((code) => [code, jsonResponse(errorBody, MEANING[code])]);
  return Object.fromEntries(entries) as Record<C, ReturnType<typeof jsonResponse<typeof errorBody>>>;
}

export function jsonResponse<T extends z.ZodType>(schema: T, description: string) {
  return { description, content: { "application/json": { schema } } };
}

/** A missing body is read as `{}`, except on routes with FastAPI input rules. */
export function jsonBody<T extends z.ZodType>(schema: T) {
  return { required: true, content: { "application/json": { schema } } };
}

/** A response with server-sent events. Errors that occur before the stream starts are JSON. */
export function eventStream(description: string) {
  return { description, content: { "text/event-stream": { schema: z.string() } } };
}

/** @param descriptions by name of the response header */
export function responseHeaders(descriptions: Record<string, string>) {
  const entries = Object.entries(descriptions);
  const schema = { type: "string" as const };
  return Object.fromEntries(entries.map(([name, description]) => [name, { description, schema }]));
}

/** Clients request pages until `X-Pagination-Next` is absent. */
export const paginationHeaders = responseHeaders({
  "X-Pagination-Total": "Number of records up to the end of this page, plus one if another page may follow.",
  "X-Pagination-Next": "Offset of the next page. Absent on the last page.",
});
