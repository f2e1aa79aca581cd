import { z } from "@hono/zod-openapi";
import { errorResponses, jsonObject, jsonResponse, queryFlag } from "../../platform/contract/fields.ts";
import { routeGroup } from "../../platform/contract/operation.ts";

/** `version` is the API level that the official clients compare, not Threadmill's version; `flags` are the features that they check for. */
export const ServerInfo = z
  .looseObject({
    version: z.string().openapi({ example: "0.16.0" }),
    threadmill_version: z.string(),
    langgraph_js_version: z.string().optional(),
    context: z.literal("js").openapi({ description: "Programming language of the graphs." }),
    flags: jsonObject,
    metadata: jsonObject,
  })
  .openapi("ServerInfo");
export type ServerInfo = z.infer<typeof ServerInfo>;

export const systemRoutes = routeGroup("System", {
  /** Liveness probe without authentication. 500: `check_db` is set and the database does not respond. */
  ok: {
    method: "get",
    path: "/ok",
    summary: "Check that the server is up",
    request: { query: z.object({ check_db: queryFlag("Whether to also check the database.") }) },
    responses: {
      200: jsonResponse(z.object({ ok: z.literal(true) }), "The server is up."),
      ...errorResponses(422, 500),
    },
  },

  info: {
    method: "get",
    path: "/info",
    summary: "Get the server's version and features",
    responses: { 200: jsonResponse(ServerInfo, "Version and features.") },
  },
});
