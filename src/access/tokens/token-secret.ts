import type { Clock } from "../../platform/lib/clock.ts";
import type { AadContext, Seal } from "../encryption/seal.ts";
import type { TokenRow } from "../storage/schema.ts";

/** The secret part of a token. */
export interface TokenSecret {
  access_token: string;
  refresh_token?: string | undefined;
  /** In the spelling of the provider, such as `bearer`. */
  token_type?: string | undefined;
}

/** Marks a token that its owner must authorize again, because its provider has moved to another origin. */
export const NO_SECRET: TokenSecret = { access_token: "" };

type TokenKey = Pick<TokenRow, "tenant_id" | "token_id">;

const aadOf = ({ tenant_id, token_id }: TokenKey): AadContext => ({
  tenant_id,
  table: "oauth_tokens",
  row_id: token_id,
  column: "secret",
});

/** The value of the column `secret`. */
export const sealToken = (seal: Seal, token: TokenKey, secret: TokenSecret): string =>
  seal.seal(JSON.stringify(secret), aadOf(token));

/** @throws SealError as {@link Seal.open} */
export const openToken = (seal: Seal, row: TokenKey & Pick<TokenRow, "secret">): TokenSecret =>
  JSON.parse(seal.open(row.secret, aadOf(row))) as TokenSecret;

/** A token that a client obtained itself. */
interface ImportedToken {
  access_token: string;
  refresh_token?: string | null | undefined;
  expires_in_seconds?: number | null | undefined;
}

export const importedSecret = ({ access_token, refresh_token }: ImportedToken): TokenSecret => ({
  access_token,
  ...(refresh_token && { refresh_token }),
});

/** In milliseconds since the epoch; null when the token does not expire. */
export const importedExpiry = ({ expires_in_seconds }: ImportedToken, clock: Clock): number | null =>
  typeof expires_in_seconds === "number" ? clock.now() + expires_in_seconds * 1000 : null;
