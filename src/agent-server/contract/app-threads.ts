import { createRoute, z } from "@hono/zod-openapi";
import { errorResponses, jsonBody, jsonResponse, optional, paginationHeaders } from "../../platform/contract/fields.ts";
import { PartialThread } from "./records.ts";
import { threadSearch } from "./threads.ts";

/** {@link threadSearch}, and a text that the stored state contains, in any case, or that the thread's id begins with. */
export const threadTextSearch = z
  .object({ ...threadSearch.shape, text: optional(z.string().max(1000)) })
  .openapi("ThreadTextSearch");
export type ThreadTextSearch = z.output<typeof threadTextSearch>;

/** POST /app/api/threads/search. The agent server's own search knows no text. */
const searchThreadsByText = createRoute({
  method: "post",
  path: "/app/api/threads/search",
  operationId: "searchThreadsByText",
  summary: "Search threads by a text, too",
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
