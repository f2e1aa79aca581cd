import type { Service } from "../lib/service.ts";
import type { RevokeTokens } from "./after-deletion.ts";
import { Connections } from "./connections.ts";
import type { VaultContext } from "./context.ts";
import { Providers } from "./providers.ts";
import { tokenEventRetention } from "./token-event-retention.ts";
import { Tokens } from "./tokens.ts";

/** The rules of the Auth Service, and what runs in the background for it. */
export interface Vault {
  providers: Providers;
  tokens: Tokens;
  connections: Connections;
  maintenance: readonly Service[];
}

export const createVault = (context: VaultContext, revoke: RevokeTokens): Vault => ({
  providers: new Providers(context, revoke),
  tokens: new Tokens(context, revoke),
  connections: new Connections(context, revoke),
  maintenance: [tokenEventRetention(context)],
});
