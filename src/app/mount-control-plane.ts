import { OpenAPIHono, type RouteConfig } from "@hono/zod-openapi";
import { authServiceRoutes, securitySchemes } from "../access/contract/routes.ts";
import { type AuthServiceAppOptions, serveAuthService } from "../access/http/auth-service.ts";
import { controlPlaneDocument, controlRoutes } from "../control-plane/contract/routes.ts";
import {
  serveDeployments,
  serveIntegrations,
  serveListeners,
  serveLogs,
  serveRevisions,
  serveUploads,
} from "../control-plane/http/deployments.ts";
import type { Control } from "../control-plane/index.ts";
import { ApiError } from "../platform/errors.ts";
import type { App } from "../platform/http/route.ts";

export interface ControlPlaneOptions extends AuthServiceAppOptions {
  control: Control;
}

/** `/api-host` is the path of the control plane in a self-hosted LangSmith. */
const MOUNTS = ["", "/api-host"] as const;

const ROUTES: readonly RouteConfig[] = [authServiceRoutes, controlRoutes].flatMap((groups) =>
  Object.values(groups as Record<string, Record<string, RouteConfig>>).flatMap((group) => Object.values(group)),
);

/** Serves the Auth Service and the control plane, which share one OpenAPI document. */
export function serveControlPlane(app: App, options: ControlPlaneOptions): void {
  const { control } = options;
  for (const path of ["/v2/openapi.json", "/api-host/v2/openapi.json", "/api-host/openapi.json"])
    app.get(path, (context) => context.json(controlPlaneOpenApi()));
  serveAuthService(app, MOUNTS, options);
  serveDeployments(app, MOUNTS, control, options);
  serveRevisions(app, MOUNTS, control, options);
  serveLogs(app, MOUNTS, control);
  serveListeners(app, MOUNTS, control);
  serveIntegrations(app, MOUNTS);
  serveUploads(app, MOUNTS, control);
  rejectOtherMethods(app);
}

/** Responds with 405 when a path does not support the method. Must be called after all routes are registered. */
function rejectOtherMethods(app: App): void {
  for (const path of new Set(ROUTES.map((route) => route.path))) {
    const allow = ROUTES.filter((route) => route.path === path).map(({ method }) => method.toUpperCase());
    for (const mount of MOUNTS)
      app.all(`${mount}${path.replaceAll(/\{(\w+)\}/g, ":$1")}`, (context) => {
        context.header("allow", allow.join(", "));
        throw new ApiError("method_not_allowed");
      });
  }
}

/** Returns the OpenAPI document of the control plane and the Auth Service. */
export function controlPlaneOpenApi() {
  const document = new OpenAPIHono();
  for (const [name, scheme] of Object.entries(securitySchemes))
    document.openAPIRegistry.registerComponent("securitySchemes", name, scheme);
  for (const route of ROUTES) document.openAPIRegistry.registerPath(route);
  return document.getOpenAPI31Document(controlPlaneDocument);
}

/** Path prefixes whose unknown paths get FastAPI's 404 response. Version 2 of the experiments API is excluded. */
const CONTROL_PLANE_PATH =
  /^\/(api-host(\/|$)|v2\/(?!(runs|datasets|public|threads|traces)\/)|v1\/(projects|integrations)\/)/;

/** @param path of a request, without `http.mount_prefix` */
export const isControlPlane = (path: string): boolean => CONTROL_PLANE_PATH.test(path);
