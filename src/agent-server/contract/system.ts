import { createRoute, z } from "@hono/zod-openapi";
import { errorResponses, jsonObject, jsonResponse, queryFlag } from "../../platform/contract/fields.ts";

const tags = ["System"];

/** Liveness for load balancers and probes. Needs no authentication. 500: `check_db` was set and the database does not respond. */
export const ok = createRoute({
  method: "get",
  path: "/ok",
  operationId: "ok",
  summary: "Check that the server is up",
  tags,
  request: {
    query: z.object({ check_db: queryFlag("Also checks the database.") }),
  },
  responses: {
    200: jsonResponse(z.object({ ok: z.literal(true) }), "The server is up."),
    ...errorResponses(422, 500),
  },
});

/**
 * Version and features of the server. `version` is the API level that the official clients compare, not Threadmill's version; `flags` are
 * the features that they probe.
 */
export const ServerInfo = z
  .looseObject({
    version: z.string().openapi({ example: "0.16.0" }),
    threadmill_version: z.string(),
    langgraph_js_version: z.string().optional(),
    context: z.literal("js").openapi({ description: "The language of the graphs." }),
    flags: jsonObject,
    metadata: jsonObject,
  })
  .openapi("ServerInfo");
export type ServerInfo = z.infer<typeof ServerInfo>;

/** Clients read this before they use a feature that older servers lack. */
export const info = createRoute({
  method: "get",
  path: "/info",
  operationId: "info",
  summary: "Get the server's version and features",
  tags,
  responses: { 200: jsonResponse(ServerInfo, "Version and features.") },
});
