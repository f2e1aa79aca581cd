import { createRoute, z } from "@hono/zod-openapi";
import { SCOPES } from "../../platform/contract/caller.ts";
import { jsonResponse, uuid } from "../../platform/contract/fields.ts";

const tags = ["Web app"];

/** The user of the web app and their scopes. */
export const Session = z
  .object({ user_id: z.string(), tenant_id: uuid, scopes: z.array(z.enum(SCOPES)) })
  .openapi("Session");
export type Session = z.infer<typeof Session>;

const getSession = createRoute({
  method: "get",
  path: "/app/api/session",
  operationId: "getSession",
  summary: "Get the current session",
  tags,
  responses: { 200: jsonResponse(Session, "The caller.") },
});

/** Routes that only the web app uses. */
export const webAppRoutes = {
  getSession, // GET /app/api/session
} as const;
