import { OpenAPIHono, type RouteConfig } from "@hono/zod-openapi";
import { fastapiErrors } from "../../platform/http/fastapi.ts";
import { type App, type Checked, handleRoute, jsonHandler } from "../../platform/http/route.ts";
import { adminDocument, adminRoutes as routes } from "../contract/admin.ts";
import type { ApiKeys } from "../keys/api-keys.ts";
import type { Workspaces } from "../workspaces.ts";

export interface AdminRoutesOptions {
  keys: ApiKeys;
  workspaces: Workspaces;
}

export function serveAdmin(app: App, { keys, workspaces }: AdminRoutesOptions): void {
  const serve = <R extends RouteConfig>(route: R, run: (request: Checked<R>) => unknown) =>
    handleRoute(app, route, jsonHandler(route, run), fastapiErrors);

  serve(routes.listApiKeys, ({ caller, query }) => keys.list(caller, query.tenant_id));
  serve(routes.createApiKey, ({ caller, body }) => keys.create(caller, body));
  serve(routes.revokeApiKey, ({ caller, params }) => keys.revoke(caller, params.key_id));
  serve(routes.listWorkspaces, ({ caller }) => workspaces.list(caller));
  serve(routes.createWorkspace, ({ caller, body }) => workspaces.create(caller, body));
  serve(routes.listMembers, ({ caller, params }) => workspaces.listMembers(caller, params.tenant_id));
  serve(routes.putMember, ({ caller, params: { tenant_id, user_id }, body }) =>
    workspaces.putMember(caller, tenant_id, user_id, body.role),
  );
  serve(routes.deleteMember, ({ caller, params }) => workspaces.deleteMember(caller, params.tenant_id, params.user_id));

  app.get("/admin/openapi.json", (context) => context.json(adminOpenApi()));
}

/** Returns the OpenAPI document of the administration routes. */
export function adminOpenApi() {
  const document = new OpenAPIHono();
  for (const route of Object.values(routes)) document.openAPIRegistry.registerPath(route);
  return document.getOpenAPI31Document(adminDocument);
}
