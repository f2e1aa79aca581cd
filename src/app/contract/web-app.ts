import { createRoute, z } from "@hono/zod-openapi";
import { SCOPES } from "../../platform/contract/caller.ts";
import { jsonResponse, uuid } from "../../platform/contract/fields.ts";

export const Session = z
  .object({ user_id: z.string(), tenant_id: uuid, scopes: z.array(z.enum(SCOPES)) })
  .openapi("Session");
export type Session = z.infer<typeof Session>;

/** Routes that only the web app uses. */
export const webAppRoutes = {
  getSession: createRoute({
    method: "get",
    path: "/app/api/session",
    operationId: "getSession",
    summary: "Get the current session",
    tags: ["Web app"],
    responses: { 200: jsonResponse(Session, "The caller.") },
  }),
};
