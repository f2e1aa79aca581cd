import { createRoute, z } from "@hono/zod-openapi";
import { errorResponses, jsonBody, jsonResponse, optional, paginationHeaders } from "../../platform/contract/fields.ts";
import { PartialThread } from "./records.ts";
import { threadSearch } from "./threads.ts";

/** {@link threadSearch} with a text: a substring of the stored state, case-insensitive, or a prefix of the thread's id. */
export const threadTextSearch = z
  .object({ ...threadSearch.shape, text: optional(z.string().max(1000)) })
  .openapi("ThreadTextSearch");
export type ThreadTextSearch = z.output<typeof threadTextSearch>;

/** POST /app/api/threads/search. The agent server's own search has no full text. */
const searchThreadsByText = createRoute({
  method: "post",
  path: "/app/api/threads/search",
  operationId: "searchThreadsByText",
  summary: "Search threads, also by text",
  tags: ["Web app"],
  request: { body: jsonBody(threadTextSearch) },
  responses: {
    200: { ...jsonResponse(z.array(PartialThread), "One page."), headers: paginationHeaders },
    ...errorResponses(422),
  },
});

export const appThreadRoutes = {
  searchThreadsByText, // POST /app/api/threads/search
} as const;
