import { serveAt } from "../../platform/http/fastapi.ts";
import type { App } from "../../platform/http/route.ts";
import { authServiceRoutes } from "../contract/routes.ts";
import type { Providers } from "../oauth/providers.ts";
import type { Connections } from "../tokens/connections.ts";
import type { Tokens } from "../tokens/tokens.ts";
import type { Vault } from "../vault.ts";
import { type FlowRoutesOptions, serveFlows } from "./flows.ts";

export interface AuthServiceAppOptions extends FlowRoutesOptions {
  vault: Vault;
}

/** @param mounts path prefixes at which the Auth Service is served */
export function serveAuthService(app: App, mounts: readonly string[], options: AuthServiceAppOptions): void {
  const { vault } = options;
  serveFlows(app, mounts, vault.flows, options);
  serveProviders(app, mounts, vault.providers);
  serveTokens(app, mounts, vault.tokens);
  serveConnections(app, mounts, vault.connections);
}

function serveProviders(app: App, mounts: readonly string[], providers: Providers): void {
  const routes = authServiceRoutes.providers;

  serveAt(app, mounts, routes.listProviders, async ({ caller, context }) => context.json(await providers.list(caller)));

  serveAt(app, mounts, routes.createProvider, async ({ caller, body, context }) =>
    context.json(await providers.create(caller, body)),
  );

  serveAt(app, mounts, routes.getProvider, async ({ caller, params, context }) =>
    context.json(await providers.get(caller, params.provider_id)),
  );

  serveAt(app, mounts, routes.updateProvider, async ({ caller, params, body, context }) =>
    context.json(await providers.update(caller, params.provider_id, body)),
  );

  serveAt(app, mounts, routes.deleteProvider, async ({ caller, params, context }) => {
    await providers.delete(caller, params.provider_id);
    return context.json({ message: `OAuth provider '${params.provider_id}' deleted` });
  });

  serveAt(app, mounts, routes.listPlatformProviders, ({ context }) => context.json([]));
}

function serveTokens(app: App, mounts: readonly string[], tokens: Tokens): void {
  const routes = authServiceRoutes.tokens;

  serveAt(app, mounts, routes.listTokens, async ({ caller, query, context }) =>
    context.json(await tokens.list(caller, query.provider_id)),
  );

  serveAt(app, mounts, routes.deleteTokens, async ({ caller, query, context }) =>
    context.json(await tokens.deleteAll(caller, query.provider_id)),
  );

  serveAt(app, mounts, routes.checkTokenExists, async ({ caller, query: { provider_id }, context }) =>
    context.json({ has_token: (await tokens.exist(caller, [provider_id]))[provider_id] }),
  );

  serveAt(app, mounts, routes.checkTokensExist, async ({ caller, body, context }) =>
    context.json({ has_token: await tokens.exist(caller, body.provider_ids) }),
  );

  serveAt(app, mounts, routes.importToken, async ({ caller, body, context }) =>
    context.json(await tokens.import(caller, body)),
  );

  serveAt(app, mounts, routes.updateToken, async ({ caller, params, body, context }) =>
    context.json(await tokens.update(caller, params.token_id, body)),
  );

  serveAt(app, mounts, routes.deleteToken, async ({ caller, params, context }) => {
    await tokens.delete(caller, params.token_id);
    return context.body(null, 204);
  });

  serveAt(app, mounts, routes.listTokenEvents, async ({ caller, query, context }) =>
    context.json(await tokens.events(caller, query.provider_id, query.limit)),
  );
}

function serveConnections(app: App, mounts: readonly string[], connections: Connections): void {
  const routes = authServiceRoutes.connections;

  serveAt(app, mounts, routes.listConnections, async ({ caller, params, context }) =>
    context.json({ data: await connections.list(caller, params.agent_id) }),
  );

  serveAt(app, mounts, routes.createConnection, async ({ caller, params, body, context }) =>
    context.json(await connections.create(caller, params.agent_id, body.oauth_token_id), 201),
  );

  serveAt(app, mounts, routes.removeConnection, async ({ caller, params, context }) => {
    await connections.remove(caller, params.agent_id, params.connection_id);
    return context.body(null, 204);
  });

  serveAt(app, mounts, routes.putAgentToken, async ({ caller, params, body, context }) =>
    context.json(await connections.putToken(caller, params, body), 201),
  );
}
