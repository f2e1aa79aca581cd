import type { BackgroundService } from "../platform/lib/background-service.ts";
import type { VaultContext } from "./context.ts";
import { Flows } from "./oauth/flows.ts";
import { Providers } from "./oauth/providers.ts";
import { Connections } from "./tokens/connections.ts";
import { tokenEventRetention } from "./tokens/token-events.ts";
import { Tokens } from "./tokens/tokens.ts";

const STORE_ALLOWANCE_MS = 5_000;

/** The Auth Service and its background services. */
export type Vault = ReturnType<typeof createVault>;

export function createVault(context: VaultContext) {
  const flows = new Flows(context);
  return {
    providers: new Providers(context),
    tokens: new Tokens(context),
    connections: new Connections(context),
    flows,
    /** Waits for ongoing requests to providers. Call it before the database is closed. */
    ended: () => context.ongoing.ended(context.settings.provider_timeout_ms + STORE_ALLOWANCE_MS),
    maintenance: [tokenEventRetention(context), flows] as readonly BackgroundService[],
  };
}
