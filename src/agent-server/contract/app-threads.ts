import { z } from "@hono/zod-openapi";
import { errorResponses, jsonBody, jsonResponse, optional, paginationHeaders } from "../../platform/contract/fields.ts";
import { routeGroup } from "../../platform/contract/operation.ts";
import { PartialThread } from "./records.ts";
import { threadSearch } from "./threads.ts";

/**
 * `text` matches a substring of the stored state (case-insensitive) or a prefix of the thread's id. The search of the public
 * API has no `text` filter. Threads whose metadata contains `exclude_metadata` are left out.
 */
export const threadTextSearch = z
  .object({
    ...threadSearch.shape,
    text: optional(z.string().max(1000)),
    exclude_metadata: threadSearch.shape.metadata,
  })
  .openapi("ThreadTextSearch");
export type ThreadTextSearch = z.output<typeof threadTextSearch>;

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
});
