import { z } from "@hono/zod-openapi";
import { errorResponses, jsonObject, jsonResponse, queryFlag } from "../../platform/contract/fields.ts";
import { routeGroup } from "../../platform/contract/operation.ts";

/** `version` is the API level that the official clients compare, not Threadmill's version; `flags` are the features that they check for. */
export const ServerInfo = z
  .looseObject({
    version: z.string().openapi({ example: "0.16.14" }),
    threadmill_version: z.string(),
    langgraph_js_version: z.string().optional(),
    context: z.literal("js").openapi({ description: 'Always "js": the language of the server, not of the graphs.' }),
    flags: jsonObject,
    metadata: jsonObject,
    host: z.object({ kind: z.string(), project_id: z.string().nullable(), tenant_id: z.string().nullable() }).openapi({
      description:
        "`project_id` and `tenant_id` are the IDs of the deployment and the workspace that this server belongs to. They are null outside a deployment.",
    }),
  })
  .openapi("ServerInfo");
export type ServerInfo = z.infer<typeof ServerInfo>;

export const systemRoutes = routeGroup("System", {
  /** Liveness probe without authentication. 500: `check_db` is set and the database is unavailable. */
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

  /** Without authentication: clients read the features before they have a key. */
  info: {
    method: "get",
    path: "/info",
    summary: "Get the server's version and features",
    responses: { 200: jsonResponse(ServerInfo, "Version and features.") },
  },

  /** Counters and histograms cover only the process that responds, so each process must be scraped. */
  metrics: {
    method: "get",
    path: "/metrics",
    summary: "Get server metrics",
    description: "Only administrators of the default workspace can read the metrics.",
    request: {
      query: z.object({
        format: z
          .enum(["prometheus", "json"])
          .default("prometheus")
          .openapi({ description: "Format of the response." }),
      }),
    },
    responses: {
      200: {
        description: "Metrics.",
        content: { "text/plain": { schema: z.string() }, "application/json": { schema: z.array(jsonObject) } },
      },
      ...errorResponses(422),
    },
  },
});
