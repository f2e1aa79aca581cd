import { createRoute, z } from "@hono/zod-openapi";
import {
  assistantId,
  errorResponses,
  graphId,
  jsonBody,
  jsonObject,
  jsonResponse,
  limit,
  nullable,
  offset,
  optional,
  paginationHeaders,
  queryBoolean,
  queryFlag,
  queryInt,
  searchable,
  selectOf,
  sortOrder,
  uuid,
  withDefault,
} from "../../platform/contract/fields.ts";
import {
  Assistant,
  AssistantVersion,
  Config,
  GraphDrawing,
  GraphSchemas,
  PartialAssistant,
  SubgraphSchemas,
} from "./records.ts";

const tags = ["Assistants"];
const params = z.object({ assistant_id: assistantId });

/** A new assistant. With `if_exists: do_nothing` and a taken id, the existing assistant is returned unchanged. */
export const assistantCreate = z
  .object({
    graph_id: graphId,
    assistant_id: optional(uuid),
    config: withDefault(Config, {}),
    context: withDefault(jsonObject, {}),
    metadata: withDefault(searchable, {}),
    name: withDefault(z.string(), "Untitled"),
    description: withDefault(nullable(z.string()), null),
    if_exists: withDefault(z.enum(["raise", "do_nothing"]), "raise"),
  })
  .openapi("AssistantCreate");
export type AssistantCreate = z.output<typeof assistantCreate>;

/** Changes of an assistant. Missing fields stay; `config` and `context` are replaced, `metadata` is merged key by key. */
export const assistantPatch = z
  .object({
    graph_id: optional(graphId),
    config: optional(Config),
    context: optional(jsonObject),
    metadata: optional(searchable),
    name: optional(z.string()),
    description: optional(z.string()),
  })
  .openapi("AssistantPatch");
export type AssistantPatch = z.output<typeof assistantPatch>;

/** Filter of assistants: `metadata` must be contained in theirs, also nested; `name` is a case-insensitive substring. */
export const assistantFilter = z
  .object({
    metadata: optional(searchable),
    graph_id: optional(graphId),
    name: optional(z.string()),
  })
  .openapi("AssistantFilter");
export type AssistantFilter = z.output<typeof assistantFilter>;

/** A page of assistants, newest first by default. */
export const assistantSearch = z
  .object({
    ...assistantFilter.shape,
    limit,
    offset,
    sort_by: withDefault(z.enum(["assistant_id", "graph_id", "name", "created_at", "updated_at"]), "created_at"),
    sort_order: sortOrder,
    select: optional(
      selectOf([
        "assistant_id",
        "graph_id",
        "name",
        "description",
        "config",
        "context",
        "created_at",
        "updated_at",
        "metadata",
        "version",
      ]),
    ),
  })
  .openapi("AssistantSearch");
export type AssistantSearch = z.output<typeof assistantSearch>;

/** A page of an assistant's versions. */
export const versionSearch = z.object({ metadata: optional(searchable), limit, offset }).openapi("VersionSearch");

/** POST /assistants. 404: unknown graph. 409: the id is taken. */
export const createAssistant = createRoute({
  method: "post",
  path: "/assistants",
  operationId: "createAssistant",
  summary: "Create an assistant",
  tags,
  request: { body: jsonBody(assistantCreate) },
  responses: { 200: jsonResponse(Assistant, "The assistant."), ...errorResponses(404, 409, 422) },
});

/** POST /assistants/search. */
export const searchAssistants = createRoute({
  method: "post",
  path: "/assistants/search",
  operationId: "searchAssistants",
  summary: "Search assistants",
  tags,
  request: { body: jsonBody(assistantSearch) },
  responses: {
    200: { ...jsonResponse(z.array(PartialAssistant), "One page."), headers: paginationHeaders },
    ...errorResponses(422),
  },
});

/** POST /assistants/count. The response is a bare number. */
export const countAssistants = createRoute({
  method: "post",
  path: "/assistants/count",
  operationId: "countAssistants",
  summary: "Count assistants",
  tags,
  request: { body: jsonBody(assistantFilter) },
  responses: { 200: jsonResponse(z.int(), "The number of matching assistants."), ...errorResponses(422) },
});

/** GET /assistants/{assistant_id}. */
export const getAssistant = createRoute({
  method: "get",
  path: "/assistants/{assistant_id}",
  operationId: "getAssistant",
  summary: "Get an assistant",
  tags,
  request: { params },
  responses: { 200: jsonResponse(Assistant, "The assistant."), ...errorResponses(404, 422) },
});

/** PATCH /assistants/{assistant_id}. Every call creates a version, even with an empty body: clients rely on it. */
export const patchAssistant = createRoute({
  method: "patch",
  path: "/assistants/{assistant_id}",
  operationId: "patchAssistant",
  summary: "Update an assistant",
  description:
    "Creates a version, numbered one above the highest, and makes it the current one, even with an empty body.",
  tags,
  request: { params, body: jsonBody(assistantPatch) },
  responses: { 200: jsonResponse(Assistant, "The updated assistant."), ...errorResponses(404, 422) },
});

/** DELETE /assistants/{assistant_id}. 409: the default assistant of a deployed graph cannot be deleted. */
export const deleteAssistant = createRoute({
  method: "delete",
  path: "/assistants/{assistant_id}",
  operationId: "deleteAssistant",
  summary: "Delete an assistant",
  description: "Also deletes its versions and stops its runs. Default assistants cannot be deleted.",
  tags,
  request: {
    params,
    query: z.object({
      delete_threads: queryFlag("Also deletes the threads whose metadata.assistant_id is this assistant."),
    }),
  },
  responses: { 204: { description: "Deleted." }, ...errorResponses(404, 409, 422) },
});

/** GET /assistants/{assistant_id}/graph. `xray`: false, true (all subgraphs), or a number of levels. */
export const getAssistantGraph = createRoute({
  method: "get",
  path: "/assistants/{assistant_id}/graph",
  operationId: "getAssistantGraph",
  summary: "Get the nodes and edges of an assistant's graph",
  tags,
  request: {
    params,
    query: z.object({
      // The number comes first: `1` is a depth here, not true.
      xray: z
        .union([queryInt(0, 100), queryBoolean], "must be true, false, or a number of levels")
        .default(false)
        .openapi({ description: "Includes subgraphs: true for all, or a number of levels." }),
    }),
  },
  responses: { 200: jsonResponse(GraphDrawing, "Nodes and edges."), ...errorResponses(404, 422) },
});

/** GET /assistants/{assistant_id}/schemas. */
export const getAssistantSchemas = createRoute({
  method: "get",
  path: "/assistants/{assistant_id}/schemas",
  operationId: "getAssistantSchemas",
  summary: "Get the JSON Schemas of an assistant's graph",
  tags,
  request: { params },
  responses: { 200: jsonResponse(GraphSchemas, "The schemas."), ...errorResponses(404, 422) },
});

const subgraphsQuery = z.object({
  recurse: queryFlag("Includes the subgraphs of subgraphs."),
});

/** GET /assistants/{assistant_id}/subgraphs. */
export const getAssistantSubgraphs = createRoute({
  method: "get",
  path: "/assistants/{assistant_id}/subgraphs",
  operationId: "getAssistantSubgraphs",
  summary: "Get the JSON Schemas of an assistant's subgraphs",
  tags,
  request: { params, query: subgraphsQuery },
  responses: { 200: jsonResponse(SubgraphSchemas, "The schemas, by namespace."), ...errorResponses(404, 422) },
});

/** GET /assistants/{assistant_id}/subgraphs/{namespace}. */
export const getAssistantSubgraphsAt = createRoute({
  method: "get",
  path: "/assistants/{assistant_id}/subgraphs/{namespace}",
  operationId: "getAssistantSubgraphsAt",
  summary: "Get the JSON Schemas of the subgraphs in a namespace",
  tags,
  request: {
    params: params.extend({ namespace: z.string().openapi({ description: "`a`, or `a|b` for one inside another." }) }),
    query: subgraphsQuery,
  },
  responses: { 200: jsonResponse(SubgraphSchemas, "The schemas, by namespace."), ...errorResponses(404, 422) },
});

/** POST /assistants/{assistant_id}/versions. Highest version first. */
export const listAssistantVersions = createRoute({
  method: "post",
  path: "/assistants/{assistant_id}/versions",
  operationId: "listAssistantVersions",
  summary: "List an assistant's versions",
  tags,
  request: { params, body: jsonBody(versionSearch) },
  responses: { 200: jsonResponse(z.array(AssistantVersion), "Newest first."), ...errorResponses(404, 422) },
});

/**
 * POST /assistants/{assistant_id}/latest. Clients send the version in the body, the official document has it in the query: the body wins,
 * and the handler returns 422 if both lack it. 404: unknown version.
 */
export const setLatestAssistantVersion = createRoute({
  method: "post",
  path: "/assistants/{assistant_id}/latest",
  operationId: "setLatestAssistantVersion",
  summary: "Set the current version of an assistant",
  description: "Restores all fields of the version. Later changes get the next free number.",
  tags,
  request: {
    params,
    query: z.object({ version: queryInt(1, 2 ** 31 - 1).optional() }),
    body: jsonBody(z.object({ version: optional(z.int().min(1)) })),
  },
  responses: { 200: jsonResponse(Assistant, "The assistant at that version."), ...errorResponses(404, 422) },
});
