import { createRoute, z } from "@hono/zod-openapi";
import { SCOPES } from "../../platform/contract/caller.ts";
import { jsonResponse, uuid } from "../../platform/contract/fields.ts";

const tags = ["Web app"];

/** Who looks at the pages, and what they may do. */
export const Session = z
  .object({ user_id: z.string(), tenant_id: uuid, scopes: z.array(z.enum(SCOPES)) })
  .openapi("Session");
export type Session = z.infer<typeof Session>;

const getSession = createRoute({
  method: "get",
  path: "/app/api/session",
  operationId: "getSession",
  summary: "Who calls",
  tags,
  responses: { 200: jsonResponse(Session, "The caller.") },
});

/** What pages need and no API of others has. */
export const webAppRoutes = {
  getSession, // GET /app/api/session
} as const;
