import type { AadContext, Seal } from "../encryption/seal.ts";
import type { ProviderRow } from "../storage/schema.ts";

type ProviderKey = Pick<ProviderRow, "tenant_id" | "id">;

const aadOf = ({ tenant_id, id }: ProviderKey): AadContext => ({
  tenant_id,
  table: "oauth_providers",
  row_id: id,
  column: "client_secret",
});

export const sealClientSecret = (seal: Seal, provider: ProviderKey, secret: string): string =>
  seal.seal(secret, aadOf(provider));

/** Returns undefined for a public client. @throws SealError like {@link Seal.open} */
export const openClientSecret = (
  seal: Seal,
  provider: ProviderKey & Pick<ProviderRow, "client_secret">,
): string | undefined =>
  provider.client_secret === null ? undefined : seal.open(provider.client_secret, aadOf(provider));
