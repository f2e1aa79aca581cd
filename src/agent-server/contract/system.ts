import { createRoute, z } from "@hono/zod-openapi";
import { errorResponses, jsonObject, jsonResponse, queryFlag } from "../../platform/contract/fields.ts";

const tags = ["System"];

/** Liveness for load balancers and probes. Always open; 500 when the database was asked for and does not answer. */
export const ok = createRoute({
  method: "get",
  path: "/ok",
  operationId: "ok",
  summary: "Is the server up?",
  tags,
  request: {
    query: z.object({ check_db: queryFlag("Ask the database too.") }),
  },
  responses: {
    200: jsonResponse(z.object({ ok: z.literal(true) }), "The server is up."),
    ...errorResponses(422, 500),
  },
});

/**
 * What the server is. `version` is the API level that the official clients compare, not our own version,
 * and `flags` are the features that they probe.
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

/** Clients read this before they use a feature that is newer than the API itself. */
export const info = createRoute({
  method: "get",
  path: "/info",
  operationId: "info",
  summary: "Version and features of the server",
  tags,
  responses: { 200: jsonResponse(ServerInfo, "Version and features.") },
});
