import type { BackgroundService } from "../platform/lib/background-service.ts";
import type { VaultContext } from "./context.ts";
import { Flows } from "./oauth/flows.ts";
import { Providers } from "./oauth/providers.ts";
import { Connections } from "./tokens/connections.ts";
import { tokenEventRetention } from "./tokens/token-events.ts";
import { Tokens } from "./tokens/tokens.ts";

/** The Auth Service and its background services. */
export type Vault = ReturnType<typeof createVault>;

export function createVault(context: VaultContext) {
  const flows = new Flows(context);
  return {
    providers: new Providers(context),
    tokens: new Tokens(context),
    connections: new Connections(context),
    flows,
    /** Resolves when no request to a provider is ongoing. Call it before the database is closed. */
    ended: () => context.ongoing.ended(),
    maintenance: [tokenEventRetention(context), flows] as readonly BackgroundService[],
  };
}
