import { z } from "@hono/zod-openapi";
import { errorResponses, jsonBody, jsonResponse, optional, paginationHeaders } from "../../platform/contract/fields.ts";
import { routeGroup } from "../../platform/contract/operation.ts";
import { PartialThread } from "./records.ts";
import { threadFilter, threadSearch } from "./threads.ts";

/**
 * Filters that the public API does not have: `text` matches a substring of the stored state (case-insensitive) or a prefix of the thread's
 * id. Threads whose metadata contains `exclude_metadata` are left out.
 */
const textFilter = { text: optional(z.string().max(1000)), exclude_metadata: threadFilter.shape.metadata };

export const threadTextSearch = z.object({ ...threadSearch.shape, ...textFilter }).openapi("ThreadTextSearch");
export type ThreadTextSearch = z.output<typeof threadTextSearch>;

export const threadTextFilter = z.object({ ...threadFilter.shape, ...textFilter }).openapi("ThreadTextFilter");

export const appThreadRoutes = routeGroup("Web app", {
  searchThreadsByText: {
    method: "post",
    path: "/app/api/threads/search",
    summary: "Search threads by text and other filters",
    request: { body: jsonBody(threadTextSearch) },
    responses: {
      200: { ...jsonResponse(z.array(PartialThread), "A page of threads."), headers: paginationHeaders },
      ...errorResponses(422),
    },
  },

  countThreadsByText: {
    method: "post",
    path: "/app/api/threads/count",
    summary: "Count threads by text and other filters",
    request: { body: jsonBody(threadTextFilter) },
    responses: { 200: jsonResponse(z.int(), "The number of matching threads."), ...errorResponses(422) },
  },
});
