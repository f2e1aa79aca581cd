import { OpenAPIHono, type RouteConfig } from "@hono/zod-openapi";
import { authServiceRoutes, securitySchemes } from "../access/contract/routes.ts";
import { type AuthServiceAppOptions, serveAuthService } from "../access/http/app.ts";
import { controlPlaneDocument, controlRoutes } from "../control-plane/contract/routes.ts";
import { serveDeployments } from "../control-plane/http/deployments.ts";
import { serveIntegrations } from "../control-plane/http/integrations.ts";
import { serveListeners } from "../control-plane/http/listeners.ts";
import { serveLogs } from "../control-plane/http/logs.ts";
import { serveRevisions } from "../control-plane/http/revisions.ts";
import { serveUploads } from "../control-plane/http/uploads.ts";
import type { Control } from "../control-plane/index.ts";
import { ApiError } from "../platform/errors.ts";
import type { App } from "../platform/http/route.ts";

export interface ControlPlaneOptions extends AuthServiceAppOptions {
  control: Control;
}

/** At the root, and where a self-hosted original has the whole control plane. */
const MOUNTS = ["", "/api-host"] as const;

const ROUTES: readonly RouteConfig[] = [authServiceRoutes, controlRoutes].flatMap((groups) =>
  Object.values(groups as Record<string, Record<string, RouteConfig>>).flatMap((group) => Object.values(group)),
);

/** The control plane: the Auth Service and deployments, in one document. */
export function serveControlPlane(app: App, options: ControlPlaneOptions): void {
  const { control } = options;
  for (const path of ["/v2/openapi.json", "/api-host/v2/openapi.json", "/api-host/openapi.json"])
    app.get(path, (context) => context.json(openApiDocument()));
  serveAuthService(app, MOUNTS, options);
  serveDeployments(app, MOUNTS, control, options);
  serveRevisions(app, MOUNTS, control, options);
  serveLogs(app, MOUNTS, control);
  serveListeners(app, MOUNTS, control);
  serveIntegrations(app, MOUNTS);
  serveUploads(app, MOUNTS, control);
  refuseOtherMethods(app);
}

/** A path that is there, but not for this method: 405. Comes after all routes, so that each is found first. */
function refuseOtherMethods(app: App): void {
  for (const path of new Set(ROUTES.map((route) => route.path))) {
    const allow = ROUTES.filter((route) => route.path === path).map(({ method }) => method.toUpperCase());
    for (const mount of MOUNTS)
      app.all(`${mount}${path.replaceAll(/\{(\w+)\}/g, ":$1")}`, (context) => {
        context.header("allow", allow.join(", "));
        throw new ApiError("method_not_allowed");
      });
  }
}

function openApiDocument() {
  const document = new OpenAPIHono();
  for (const [name, scheme] of Object.entries(securitySchemes))
    document.openAPIRegistry.registerComponent("securitySchemes", name, scheme);
  for (const route of ROUTES) document.openAPIRegistry.registerPath(route);
  return document.getOpenAPI31Document(controlPlaneDocument);
}

/** Below these paths what is not there is answered in FastAPI's words. Version 2 of the experiments has words of its own. */
const CONTROL_PLANE = /^\/(api-host(\/|$)|v2\/(?!(runs|datasets)\/)|v1\/(projects|integrations)\/)/;

/** @param path below the prefix of all routes */
export const isControlPlane = (path: string): boolean => CONTROL_PLANE.test(path);
