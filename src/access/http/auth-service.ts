import type { RouteConfig } from "@hono/zod-openapi";
import { serveAt } from "../../platform/http/fastapi.ts";
import { type App, type Checked, jsonHandler } from "../../platform/http/route.ts";
import { authServiceRoutes as routes } from "../contract/routes.ts";
import type { Vault } from "../vault.ts";
import { type FlowRoutesOptions, serveFlows } from "./flows.ts";

export interface AuthServiceAppOptions extends FlowRoutesOptions {
  vault: Vault;
}

/** @param mounts path prefixes under which the Auth Service is served */
export function serveAuthService(app: App, mounts: readonly string[], options: AuthServiceAppOptions): void {
  const { providers, tokens, connections, flows } = options.vault;
  const serve = <R extends RouteConfig>(route: R, run: (request: Checked<R>) => unknown) =>
    serveAt(app, mounts, route, jsonHandler(route, run));

  serveFlows(app, mounts, flows, options);

  serve(routes.providers.listProviders, ({ caller }) => providers.list(caller));
  serve(routes.providers.createProvider, ({ caller, body }) => providers.create(caller, body));
  serve(routes.providers.getProvider, ({ caller, params }) => providers.get(caller, params.provider_id));
  serve(routes.providers.updateProvider, ({ caller, params, body }) =>
    providers.update(caller, params.provider_id, body),
  );
  serve(routes.providers.deleteProvider, async ({ caller, params: { provider_id } }) => {
    await providers.delete(caller, provider_id);
    return { message: `OAuth provider '${provider_id}' deleted` };
  });
  serve(routes.providers.listPlatformProviders, () => []);

  serve(routes.tokens.listTokens, ({ caller, query }) => tokens.list(caller, query.provider_id));
  serve(routes.tokens.deleteTokens, ({ caller, query }) => tokens.deleteAll(caller, query.provider_id));
  serve(routes.tokens.checkTokenExists, async ({ caller, query: { provider_id } }) => ({
    has_token: (await tokens.exist(caller, [provider_id]))[provider_id],
  }));
  serve(routes.tokens.checkTokensExist, async ({ caller, body }) => ({
    has_token: await tokens.exist(caller, body.provider_ids),
  }));
  serve(routes.tokens.importToken, ({ caller, body }) => tokens.import(caller, body));
  serve(routes.tokens.updateToken, ({ caller, params, body }) => tokens.update(caller, params.token_id, body));
  serve(routes.tokens.deleteToken, ({ caller, params }) => tokens.delete(caller, params.token_id));
  serve(routes.tokens.listTokenEvents, ({ caller, query }) => tokens.events(caller, query.provider_id, query.limit));

  serve(routes.connections.listConnections, async ({ caller, params }) => ({
    data: await connections.list(caller, params.agent_id),
  }));
  serve(routes.connections.createConnection, ({ caller, params, body }) =>
    connections.create(caller, params.agent_id, body.oauth_token_id),
  );
  serve(routes.connections.removeConnection, ({ caller, params }) =>
    connections.remove(caller, params.agent_id, params.connection_id),
  );
  serve(routes.connections.putAgentToken, ({ caller, params, body }) => connections.putToken(caller, params, body));
}
