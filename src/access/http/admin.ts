import { OpenAPIHono, type RouteConfig } from "@hono/zod-openapi";
import { fastapiErrors } from "../../platform/http/fastapi.ts";
import { type App, type Handler, handleRoute } from "../../platform/http/route.ts";
import { adminDocument, adminRoutes as routes } from "../contract/admin.ts";
import type { ApiKeys } from "../keys/api-keys.ts";
import type { Workspaces } from "../workspaces.ts";

export interface AdminRoutesOptions {
  keys: ApiKeys;
  workspaces: Workspaces;
}

/** Routes of the administration API. */
export function serveAdmin(app: App, { keys, workspaces }: AdminRoutesOptions): void {
  const serve = <R extends RouteConfig>(route: R, handler: Handler<R>) =>
    handleRoute(app, route, handler, fastapiErrors);

  serve(routes.listApiKeys, async ({ caller, query, context }) =>
    context.json(await keys.list(caller, query.tenant_id)),
  );

  serve(routes.createApiKey, async ({ caller, body, context }) => context.json(await keys.create(caller, body), 201));

  serve(routes.revokeApiKey, async ({ caller, params, context }) => {
    await keys.revoke(caller, params.key_id);
    return context.body(null, 204);
  });

  serve(routes.listWorkspaces, async ({ caller, context }) => context.json(await workspaces.list(caller)));

  serve(routes.createWorkspace, async ({ caller, body, context }) =>
    context.json(await workspaces.create(caller, body), 201),
  );

  serve(routes.listMembers, async ({ caller, params, context }) =>
    context.json(await workspaces.listMembers(caller, params.tenant_id)),
  );

  serve(routes.putMember, async ({ caller, params, body, context }) =>
    context.json(await workspaces.putMember(caller, params.tenant_id, params.user_id, body.role)),
  );

  serve(routes.deleteMember, async ({ caller, params, context }) => {
    await workspaces.deleteMember(caller, params.tenant_id, params.user_id);
    return context.body(null, 204);
  });

  app.get("/admin/openapi.json", (context) => context.json(openApiDocument()));
}

function openApiDocument() {
  const document = new OpenAPIHono();
  for (const route of Object.values(routes)) document.openAPIRegistry.registerPath(route);
  return document.getOpenAPI31Document(adminDocument);
}
