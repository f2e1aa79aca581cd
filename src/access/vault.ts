import type { Service } from "../platform/lib/service.ts";
import { Connections } from "./connections.ts";
import type { VaultContext } from "./context.ts";
import { Flows } from "./flows.ts";
import { revokeTokens } from "./oauth/revocation.ts";
import { Providers } from "./providers.ts";
import { tokenEventRetention } from "./token-event-retention.ts";
import { Tokens } from "./tokens.ts";

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
