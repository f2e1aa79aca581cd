import { OpenAPIHono, type RouteConfig } from "@hono/zod-openapi";
import { authServiceDocument, authServiceRoutes, securitySchemes } from "../../contract/auth-service/routes.ts";
import { ApiError } from "../../errors.ts";
import type { Vault } from "../../vault/vault.ts";
import type { App } from "../route.ts";
import { serveConnections } from "./connections.ts";
import { type FlowRoutesOptions, serveFlows } from "./flows.ts";
import { serveProviders } from "./providers.ts";
import { serveTokens } from "./tokens.ts";

export interface AuthServiceAppOptions extends FlowRoutesOptions {
  vault: Vault;
}

/** At the root, and where a self-hosted original has the whole control plane. */
const MOUNTS = ["", "/api-host"] as const;

const ROUTES: readonly RouteConfig[] = Object.values(authServiceRoutes).flatMap((group) => Object.values(group));

/** The Auth Service. */
export function serveAuthService(app: App, options: AuthServiceAppOptions): void {
  const { vault } = options;
  for (const path of ["/v2/openapi.json", "/api-host/v2/openapi.json", "/api-host/openapi.json"])
    app.get(path, (context) => context.json(openApiDocument()));
  serveFlows(app, MOUNTS, vault.flows, options);
  serveProviders(app, MOUNTS, vault.providers);
  serveTokens(app, MOUNTS, vault.tokens);
  serveConnections(app, MOUNTS, vault.connections);
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
  return document.getOpenAPI31Document(authServiceDocument);
}

/** Below these paths what is not there is answered in FastAPI's words. Version 2 of the experiments has words of its own. */
const CONTROL_PLANE = /^\/(api-host(\/|$)|v2\/(?!(runs|datasets)\/))/;

/** @param path below the prefix of all routes */
export const isControlPlane = (path: string): boolean => CONTROL_PLANE.test(path);
