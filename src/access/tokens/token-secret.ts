import { newId } from "../../platform/lib/ids.ts";
import type { VaultContext } from "../context.ts";
import type { AgentToken } from "../contract/connections.ts";
import type { AadContext, Seal } from "../encryption/seal.ts";
import type { TokenRow } from "../storage/schema.ts";

export interface TokenSecret {
  access_token: string;
  refresh_token?: string | undefined;
  /** Token type in the provider's spelling, such as `bearer`. */
  token_type?: string | undefined;
}

/** Marks a token whose owner must authorize again, because the token endpoint of the provider has moved to another origin. */
export const NO_SECRET: TokenSecret = { access_token: "" };

type TokenKey = Pick<TokenRow, "tenant_id" | "token_id">;

const aadOf = ({ tenant_id, token_id }: TokenKey): AadContext => ({
  tenant_id,
  table: "oauth_tokens",
  row_id: token_id,
  column: "secret",
});

export const sealToken = (seal: Seal, token: TokenKey, secret: TokenSecret): string =>
  seal.seal(JSON.stringify(secret), aadOf(token));

/** @throws SealError like {@link Seal.open} */
export const openToken = (seal: Seal, row: TokenKey & Pick<TokenRow, "secret">): TokenSecret =>
  JSON.parse(seal.open(row.secret, aadOf(row))) as TokenSecret;

/** Returns the columns of a new token that a client imports. */
export function importedColumns(
  { seal, clock }: Pick<VaultContext, "seal" | "clock">,
  tenant_id: string,
  { access_token, refresh_token, expires_in_seconds, scopes, metadata }: Omit<AgentToken, "provider_account_label">,
) {
  const key = { tenant_id, token_id: newId() };
  const secret = { access_token, ...(refresh_token && { refresh_token }) };
  return {
    ...key,
    scopes: JSON.stringify(scopes),
    secret: sealToken(seal, key, secret),
    metadata: JSON.stringify(metadata ?? {}),
    expires_at: typeof expires_in_seconds === "number" ? clock.now() + expires_in_seconds * 1000 : null,
  };
}
