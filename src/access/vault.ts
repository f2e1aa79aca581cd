import type { Service } from "../platform/lib/service.ts";
import type { VaultContext } from "./context.ts";
import { Flows } from "./oauth/flows.ts";
import { Providers } from "./oauth/providers.ts";
import { revokeTokens } from "./oauth/revocation.ts";
import { Connections } from "./tokens/connections.ts";
import { tokenEventRetention } from "./tokens/token-event-retention.ts";
import { Tokens } from "./tokens/tokens.ts";

/** The rules of the Auth Service, and what runs in the background for it. */
export interface Vault {
  providers: Providers;
  tokens: Tokens;
  connections: Connections;
  flows: Flows;
  maintenance: readonly Service[];
}

export function createVault(context: VaultContext): Vault {
  const revoke = revokeTokens(context);
  const flows = new Flows(context);
  return {
    providers: new Providers(context, revoke),
    tokens: new Tokens(context, revoke),
    connections: new Connections(context, revoke),
    flows,
    maintenance: [tokenEventRetention(context), flows],
  };
}
