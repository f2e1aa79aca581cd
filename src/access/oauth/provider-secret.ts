import type { Place, Seal } from "../encryption/seal.ts";
import type { ProviderRow } from "../storage/schema.ts";

type ProviderKey = Pick<ProviderRow, "tenant_id" | "id">;

const placeOf = ({ tenant_id, id }: ProviderKey): Place => ({
  tenant_id,
  table: "oauth_providers",
  row_id: id,
  column: "client_secret",
});

/** The text for a provider's column `client_secret`. */
export const sealClientSecret = (seal: Seal, provider: ProviderKey, secret: string): string =>
  seal.seal(secret, placeOf(provider));

/** Undefined when the client is public. @throws SealError as {@link Seal.open} */
export const openClientSecret = (
  seal: Seal,
  provider: ProviderKey & Pick<ProviderRow, "client_secret">,
): string | undefined =>
  provider.client_secret === null ? undefined : seal.open(provider.client_secret, placeOf(provider));
