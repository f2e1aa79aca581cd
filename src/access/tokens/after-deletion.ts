import type { VaultContext } from "../context.ts";
import type { ProviderRow, TokenRow } from "../storage/schema.ts";
import { openToken, type TokenSecret } from "./token-secret.ts";

/** Tells a provider that tokens are not used any more. Ends within the provider's time limit for each. */
export type RevokeTokens = (provider: ProviderRow, secrets: readonly TokenSecret[]) => Promise<void>;

/** Lets those know who wait for flows that have ended. */
export function announceFlows({ database }: Pick<VaultContext, "database">, auth_ids: readonly string[]): void {
  for (const auth_id of auth_ids) database.hints.emit({ kind: "flow", auth_id });
}

/**
 * Has deleted tokens revoked at their provider, as far as that works. Nobody waits for it: the tokens are gone here, whatever
 * the provider says. What went wrong goes to the log, without the tokens.
 */
export function revokeLater(
  { seal, log }: Pick<VaultContext, "seal" | "log">,
  revoke: RevokeTokens,
  provider: ProviderRow | undefined,
  tokens: readonly TokenRow[],
): void {
  if (!provider || tokens.length === 0) return;
  const { provider_id } = provider;
  const secrets = tokens.flatMap((token) => {
    try {
      return [openToken(seal, token)];
    } catch {
      log.warn({ provider_id, token_id: token.token_id }, "a deleted token could not be read, so it is not revoked");
      return [];
    }
  });
  const known = secrets.filter(({ access_token }) => access_token !== "");
  revoke(provider, known).catch((error: Error) =>
    log.warn({ provider_id, error: error.name }, "deleted tokens could not be revoked"),
  );
}
