import { randomBytes } from "node:crypto";
import { generateRandomCodeVerifier } from "oauth4webapi";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { VaultContext } from "../context.ts";
import type { AadContext } from "../encryption/seal.ts";
import { digestOf } from "../keys/api-key-format.ts";
import { insertFlow } from "../storage/flows.ts";
import type { ProviderRow, TokenRow } from "../storage/schema.ts";
import { authorizationUrl } from "./oauth-client.ts";

export interface FlowRequest {
  tenant_id: string;
  /** Owner of the token that the flow creates. */
  user_id: string;
  /** The caller: the user, or a service on behalf of the user. */
  started_by: string;
  agent_id: string | undefined;
  scopes: readonly string[];
  is_default: boolean;
  /** The token to renew; undefined creates a new one. */
  token_to_renew?: TokenRow | undefined;
  /** Public URL of this server; undefined when it is not known. */
  base_url: string | undefined;
}

export async function startFlow(
  context: VaultContext,
  provider: ProviderRow,
  request: FlowRequest,
): Promise<{ auth_id: string; url: string }> {
  const { tenant_id, user_id, started_by, agent_id = null, is_default, token_to_renew } = request;
  const redirect_uri = redirectUriOf(provider, request.base_url);
  const auth_id = newId();
  const state = `${auth_id}.${randomBytes(32).toString("base64url")}`;
  const verifier = provider.uses_pkce ? generateRandomCodeVerifier() : undefined;
  // A renewed token keeps its scopes, because other agents rely on them.
  const current_scopes = token_to_renew ? (JSON.parse(token_to_renew.scopes) as string[]) : [];
  const scopes = [...new Set([...current_scopes, ...request.scopes])];
  const url = await authorizationUrl(provider, { redirect_uri, scopes, state, verifier });
  const flow = {
    auth_id,
    tenant_id,
    provider_id: provider.provider_id,
    user_id,
    started_by,
    agent_id,
    token_id: token_to_renew?.token_id ?? null,
    scopes: JSON.stringify(scopes),
    redirect_uri,
    is_default: is_default ? 1 : 0,
    verifier: verifier === undefined ? null : context.seal.seal(verifier, verifierAad({ tenant_id, auth_id })),
    state_digest: digestOf(state),
  };
  await context.database.write((tx) => insertFlow(tx, flow, context.settings.flow_ttl_ms));
  return { auth_id, url };
}

export const verifierAad = ({ tenant_id, auth_id }: { tenant_id: string; auth_id: string }): AadContext => ({
  tenant_id,
  table: "oauth_flows",
  row_id: auth_id,
  column: "verifier",
});

export const callbackUrl = (base_url: string, provider_id: string): string =>
  `${base_url.replace(/\/$/, "")}/v2/auth/callback/${encodeURIComponent(provider_id)}`;

/**
 * Returns the redirect URI of a flow. The URI comes from the configuration. Only on a server that listens on
 * loopback can it contain the host name of the request.
 *
 * @throws ApiError no_public_url, redirect_uri_not_allowed
 */
function redirectUriOf(provider: ProviderRow, base_url: string | undefined): string {
  const { provider_id, default_redirect_uri } = provider;
  const uri = default_redirect_uri ?? (base_url === undefined ? undefined : callbackUrl(base_url, provider_id));
  if (uri === undefined) throw new ApiError("no_public_url");
  const allowed = JSON.parse(provider.allowed_redirect_uris) as string[];
  if (allowed.length > 0 && !allowed.includes(uri))
    throw new ApiError("redirect_uri_not_allowed", { uri, provider_id });
  return uri;
}
