import { z } from "@hono/zod-openapi";
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
import { routeGroup } from "../../platform/contract/operation.ts";
import {
  Assistant,
  AssistantVersion,
  Config,
  GraphDrawing,
  GraphSchemas,
  PartialAssistant,
  SubgraphSchemas,
} from "./records.ts";

const params = z.object({ assistant_id: assistantId });

/** With `if_exists: do_nothing` and a taken id, the existing assistant is returned unchanged. */
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

/** Missing fields stay unchanged; `config` and `context` are replaced, `metadata` is merged key by key. */
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

/** `metadata` matches assistants whose metadata contains it, including nested values; `name` is a case-insensitive substring. */
export const assistantFilter = z
  .object({
    metadata: optional(searchable),
    graph_id: optional(graphId),
    name: optional(z.string()),
  })
  .openapi("AssistantFilter");
export type AssistantFilter = z.output<typeof assistantFilter>;

export const assistantSearch = z
  .object({
    ...assistantFilter.shape,
    limit,
    offset,
    sort_by: withDefault(z.enum(["assistant_id", "graph_id", "name", "created_at", "updated_at"]), "created_at"),
    sort_order: sortOrder,
    select: optional(selectOf(Assistant.keyof().options)),
  })
  .openapi("AssistantSearch");
export type AssistantSearch = z.output<typeof assistantSearch>;

export const versionSearch = z.object({ metadata: optional(searchable), limit, offset }).openapi("VersionSearch");
export type VersionSearch = z.output<typeof versionSearch>;

const subgraphsQuery = z.object({
  recurse: queryFlag("Whether to include nested subgraphs."),
});

export const assistantRoutes = routeGroup("Assistants", {
  /** 404: unknown graph. 409: the id is taken. */
  createAssistant: {
    method: "post",
    path: "/assistants",
    summary: "Create an assistant",
    request: { body: jsonBody(assistantCreate) },
    responses: { 200: jsonResponse(Assistant, "The assistant."), ...errorResponses(404, 409, 422) },
  },

  searchAssistants: {
    method: "post",
    path: "/assistants/search",
    summary: "Search assistants",
    request: { body: jsonBody(assistantSearch) },
    responses: {
      200: { ...jsonResponse(z.array(PartialAssistant), "One page."), headers: paginationHeaders },
      ...errorResponses(422),
    },
  },

  countAssistants: {
    method: "post",
    path: "/assistants/count",
    summary: "Count assistants",
    request: { body: jsonBody(assistantFilter) },
    responses: { 200: jsonResponse(z.int(), "The number of matching assistants."), ...errorResponses(422) },
  },

  getAssistant: {
    method: "get",
    path: "/assistants/{assistant_id}",
    summary: "Get an assistant",
    request: { params },
    responses: { 200: jsonResponse(Assistant, "The assistant."), ...errorResponses(404, 422) },
  },

  patchAssistant: {
    method: "patch",
    path: "/assistants/{assistant_id}",
    summary: "Update an assistant",
    description:
      "Creates a new version and makes it the current version, even if the body is empty. The version number is the highest existing version number plus one.",
    request: { params, body: jsonBody(assistantPatch) },
    responses: { 200: jsonResponse(Assistant, "The updated assistant."), ...errorResponses(404, 422) },
  },

  deleteAssistant: {
    method: "delete",
    path: "/assistants/{assistant_id}",
    summary: "Delete an assistant",
    description:
      "Also deletes the assistant's versions and crons, and stops its active runs. Default assistants cannot be deleted.",
    request: {
      params,
      query: z.object({
        delete_threads: queryFlag(
          "Whether to also delete the threads whose `metadata.assistant_id` is this assistant's ID.",
        ),
      }),
    },
    responses: { 204: { description: "Deleted." }, ...errorResponses(404, 409, 422) },
  },

  getAssistantGraph: {
    method: "get",
    path: "/assistants/{assistant_id}/graph",
    summary: "Get the nodes and edges of an assistant's graph",
    request: {
      params,
      query: z.object({
        // The number precedes the boolean, so that `1` is parsed as a depth, not as true.
        xray: z
          .union(
            [queryInt(0, 100), queryBoolean],
            "must be true, false, or an integer from 0 to 100 (the maximum number of levels)",
          )
          .default(false)
          .openapi({
            description:
              "How many levels of subgraphs to include: `true` for all levels, or the maximum number of levels.",
          }),
      }),
    },
    responses: { 200: jsonResponse(GraphDrawing, "Nodes and edges."), ...errorResponses(404, 422) },
  },

  getAssistantSchemas: {
    method: "get",
    path: "/assistants/{assistant_id}/schemas",
    summary: "Get the JSON Schemas of an assistant's graph",
    request: { params },
    responses: { 200: jsonResponse(GraphSchemas, "The schemas."), ...errorResponses(404, 422) },
  },

  getAssistantSubgraphs: {
    method: "get",
    path: "/assistants/{assistant_id}/subgraphs",
    summary: "Get the JSON Schemas of an assistant's subgraphs",
    request: { params, query: subgraphsQuery },
    responses: { 200: jsonResponse(SubgraphSchemas, "The schemas, keyed by namespace."), ...errorResponses(404, 422) },
  },

  getAssistantSubgraphsAt: {
    method: "get",
    path: "/assistants/{assistant_id}/subgraphs/{namespace}",
    summary: "Get the JSON Schemas of a subgraph by its namespace",
    request: {
      params: params.extend({
        namespace: z.string().openapi({
          description: "Namespace of the subgraph, such as `a`, or `a|b` for the subgraph `b` inside the subgraph `a`.",
        }),
      }),
      query: subgraphsQuery,
    },
    responses: { 200: jsonResponse(SubgraphSchemas, "The schemas, keyed by namespace."), ...errorResponses(404, 422) },
  },

  listAssistantVersions: {
    method: "post",
    path: "/assistants/{assistant_id}/versions",
    summary: "List an assistant's versions",
    request: { params, body: jsonBody(versionSearch) },
    responses: { 200: jsonResponse(z.array(AssistantVersion), "Newest first."), ...errorResponses(404, 422) },
  },

  /**
   * Clients send the version in the body; the official document has it in the query. The body takes precedence, and the
   * handler returns 422 if neither contains a version. 404: unknown version.
   */
  setLatestAssistantVersion: {
    method: "post",
    path: "/assistants/{assistant_id}/latest",
    summary: "Set the current version of an assistant",
    description:
      "Restores all fields of the given version. A later update creates a version with the next unused number.",
    request: {
      params,
      query: z.object({ version: queryInt(1, 2 ** 31 - 1).optional() }),
      body: jsonBody(
        z.object({
          version: optional(
            z
              .int()
              .min(1)
              .max(2 ** 31 - 1),
          ),
        }),
      ),
    },
    responses: {
      200: jsonResponse(Assistant, "The assistant, with the fields of the given version."),
      ...errorResponses(404, 422),
    },
  },
});
