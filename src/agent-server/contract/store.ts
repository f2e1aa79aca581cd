import { z } from "@hono/zod-openapi";
import {
  errorResponses,
  jsonBody,
  jsonObject,
  jsonResponse,
  limit,
  nullable,
  offset,
  optional,
  queryBoolean,
  repeated,
  timestamp,
  withDefault,
} from "../../platform/contract/fields.ts";
import { routeGroup } from "../../platform/contract/operation.ts";

/** A JSON object with a namespace and a key. All graphs and clients of a workspace share these objects. */
export const Item = z
  .object({
    namespace: z.array(z.string()),
    key: z.string(),
    value: jsonObject,
    created_at: timestamp,
    updated_at: timestamp,
  })
  .openapi("Item");
export type Item = z.infer<typeof Item>;

const SearchItem = Item.extend({
  score: z.number().optional().openapi({ description: "Cosine similarity to the query, from -1 to 1." }),
}).openapi("SearchItem");
export type SearchItem = z.infer<typeof SearchItem>;

/** An entry of a Postgres index can have at most 2,704 bytes, including the workspace ID. */
const MAX_BYTES = { namespace: 1_200, key: 1_200 };
const MAX_LABELS = 100;

const byteLength = (text: string) => new TextEncoder().encode(text).length;

const label = z
  .string()
  .min(1, "must not be empty")
  .regex(/^[^.]*$/, "must not contain a period");

const labels = z
  .array(label)
  .max(MAX_LABELS)
  .refine((list) => byteLength(list.join(".")) < MAX_BYTES.namespace, {
    error: `must be shorter than ${MAX_BYTES.namespace} bytes when joined with periods`,
  });

const namespace = labels.min(1, "must contain at least one label").openapi({ example: ["users", "ada"] });

const key = z
  .string()
  .min(1, "must not be empty")
  .refine((text) => byteLength(text) <= MAX_BYTES.key, { error: `must be at most ${MAX_BYTES.key} bytes long` });

/** 100 years. */
const MAX_TTL_MINUTES = 52_560_000;

/** Path to texts in a value: field names and array indexes, such as `chapters[*].text`; `$` is the whole value. */
export const TEXT_PATH = /^(\$|[^.[\]{}$]+(\[(\*|-?\d{1,9})\])*(\.[^.[\]{}]+(\[(\*|-?\d{1,9})\])*)*)$/;
export const INVALID_PATH = "must be `$` or a path such as `title`, `chapters[*].text` or `authors[0].name`";

const indexed = z
  .union([z.literal(false), z.array(z.string().max(500).regex(TEXT_PATH, INVALID_PATH)).max(50)])
  .openapi({
    description:
      "Paths of the texts to embed for semantic search, or false to embed none. Default: `store.index.fields` in langgraph.json.",
  });

export const itemPut = z
  .object({
    namespace,
    key,
    value: jsonObject,
    index: optional(indexed),
    ttl: nullable(z.number().positive().max(MAX_TTL_MINUTES)).optional().openapi({
      description:
        "Minutes until the item expires, or null if it never expires. Default: `store.ttl.default_ttl` in langgraph.json.",
    }),
  })
  .openapi("ItemPut");
export type ItemPut = z.output<typeof itemPut>;

export const itemKey = z.object({ namespace, key }).openapi("ItemKey");
export type ItemKey = z.output<typeof itemKey>;

/** A read by a graph. */
export const itemRead = itemKey.extend({ refresh_ttl: optional(z.boolean()) });
export type ItemRead = z.output<typeof itemRead>;

/** Clients send the labels joined with periods. */
const itemQuery = z.object({
  namespace: repeated(z.string())
    .transform((parts) => parts.flatMap((part) => part.split(".")))
    .pipe(namespace),
  key,
  refresh_ttl: queryBoolean.optional(),
});

const scalar = z.union([z.string().max(10_000), z.number(), z.boolean(), z.null()]);
const ordered = z.union([z.string().max(10_000), z.number()]);

const comparison = z
  .strictObject({ $eq: scalar, $ne: scalar, $gt: ordered, $gte: ordered, $lt: ordered, $lte: ordered })
  .partial()
  .refine((operators) => Object.keys(operators).length > 0);

const expected = z.union([scalar, comparison]);

const MAX_FILTER_FIELDS = 20;

/** The conditions of a search. Field names must not contain double quotes or backslashes, which are special in SQLite JSON paths. */
const filter = jsonObject
  .superRefine((fields, context) => {
    const refuse = (message: string, ...path: string[]) => context.addIssue({ code: "custom", message, path });
    const entries = Object.entries(fields ?? {}); // null was already reported as an issue
    if (entries.length > MAX_FILTER_FIELDS) return refuse(`must have at most ${MAX_FILTER_FIELDS} fields`);
    for (const [field, value] of entries) {
      if (!/^[^"\\\p{Cc}]{1,200}$/u.test(field))
        refuse(
          "must be a field name of 1 to 200 characters without double quotes, backslashes or control characters",
          field,
        );
      else if (!expected.safeParse(value).success)
        refuse(
          "must be a string, number, boolean, null, or an object with at least one of $eq, $ne, $gt, $gte, $lt and $lte (the last four require a string or a number)",
          field,
        );
    }
  })
  .transform((fields) => fields as Record<string, z.output<typeof expected>>)
  .openapi({ type: "object", additionalProperties: {}, example: { kind: "note", stars: { $gte: 3 } } });
export type ItemFilter = z.output<typeof filter>;

export const itemSearch = z
  .object({
    namespace_prefix: withDefault(labels, []),
    filter: optional(filter),
    query: optional(z.string().min(1).max(100_000)).openapi({ description: "Text for semantic search." }),
    limit,
    offset,
    refresh_ttl: optional(z.boolean()),
  })
  .openapi("ItemSearch");
export type ItemSearch = z.output<typeof itemSearch>;

/** `*` matches any label. */
export const namespaceList = z
  .object({
    prefix: withDefault(labels, []),
    suffix: withDefault(labels, []),
    max_depth: optional(z.int().min(1).max(MAX_LABELS)),
    limit: withDefault(z.int().min(1).max(1_000), 100),
    offset,
  })
  .openapi("NamespaceList");
export type NamespaceList = z.output<typeof namespaceList>;

/** The clients read the list from the field `namespaces`. */
const Namespaces = z.object({ namespaces: z.array(z.array(z.string())) }).openapi("Namespaces");

export const storeRoutes = routeGroup("Store", {
  /** 422: invalid fields, or the embedding function of the project failed. */
  putItem: {
    method: "put",
    path: "/store/items",
    summary: "Create an item or replace its value",
    request: { body: jsonBody(itemPut) },
    responses: { 204: { description: "Stored." }, ...errorResponses(422) },
  },

  getItem: {
    method: "get",
    path: "/store/items",
    summary: "Get an item",
    request: { query: itemQuery },
    responses: { 200: jsonResponse(nullable(Item), "The item, or null if it does not exist."), ...errorResponses(422) },
  },

  deleteItem: {
    method: "delete",
    path: "/store/items",
    summary: "Delete an item",
    request: { body: jsonBody(itemKey) },
    responses: { 204: { description: "The item was deleted or did not exist." }, ...errorResponses(422) },
  },

  searchItems: {
    method: "post",
    path: "/store/items/search",
    summary: "Search items",
    description: "Returns the most recently updated items first or, with `query`, the most similar.",
    request: { body: jsonBody(itemSearch) },
    responses: {
      200: jsonResponse(z.object({ items: z.array(SearchItem) }), "A page of items."),
      ...errorResponses(422),
    },
  },

  listNamespaces: {
    method: "post",
    path: "/store/namespaces",
    summary: "List namespaces",
    request: { body: jsonBody(namespaceList) },
    responses: { 200: jsonResponse(Namespaces, "A page of namespaces."), ...errorResponses(422) },
  },
});
