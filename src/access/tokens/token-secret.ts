import type { Place, Seal } from "../encryption/seal.ts";
import type { TokenRow } from "../storage/schema.ts";

/** What nobody but the provider and the token's owner may see. */
export interface TokenSecret {
  access_token: string;
  refresh_token?: string | undefined;
  /** As the provider wrote it, such as `bearer`. */
  token_type?: string | undefined;
}

/** Of a grant that its owner has to renew: its provider has moved to another origin. */
export const NO_SECRET: TokenSecret = { access_token: "" };

type TokenKey = Pick<TokenRow, "tenant_id" | "token_id">;

const placeOf = ({ tenant_id, token_id }: TokenKey): Place => ({
  tenant_id,
  table: "oauth_tokens",
  row_id: token_id,
  column: "secret",
});

/** The text for a token's column `secret`. */
export const sealToken = (seal: Seal, token: TokenKey, secret: TokenSecret): string =>
  seal.seal(JSON.stringify(secret), placeOf(token));

/** @throws SealError when it was not sealed for this row, or with a key that is gone */
export const openToken = (seal: Seal, row: TokenKey & Pick<TokenRow, "secret">): TokenSecret =>
  JSON.parse(seal.open(row.secret, placeOf(row))) as TokenSecret;
