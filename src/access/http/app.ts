import type { App } from "../../platform/http/route.ts";
import type { Vault } from "../vault.ts";
import { serveConnections } from "./connections.ts";
import { type FlowRoutesOptions, serveFlows } from "./flows.ts";
import { serveProviders } from "./providers.ts";
import { serveTokens } from "./tokens.ts";

export interface AuthServiceAppOptions extends FlowRoutesOptions {
  vault: Vault;
}

/** The Auth Service. */
export function serveAuthService(app: App, mounts: readonly string[], options: AuthServiceAppOptions): void {
  const { vault } = options;
  serveFlows(app, mounts, vault.flows, options);
  serveProviders(app, mounts, vault.providers);
  serveTokens(app, mounts, vault.tokens);
  serveConnections(app, mounts, vault.connections);
}
