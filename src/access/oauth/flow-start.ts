import { createHash, randomBytes } from "node:crypto";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { VaultContext } from "../context.ts";
import type { Place } from "../encryption/seal.ts";
import { insertFlow } from "../storage/flows.ts";
import type { ProviderRow, TokenRow } from "../storage/schema.ts";
import { authorizationUrl, newVerifier } from "./client.ts";

/** Who is to come back with what. */
export interface FlowRequest {
  tenant_id: string;
  /** Whose token comes of it. */
  user_id: string;
  /** Who asks: the user, or a service that names the user. */
  started_by: string;
  /** The agent that may use the token then. */
  agent_id: string | undefined;
  scopes: readonly string[];
  is_default: boolean;
  /** The token that is granted anew, instead of another one beside it. */
  renews?: TokenRow | undefined;
  /** Our own address, as users' browsers reach it; undefined when it is not known. */
  base_url: string | undefined;
}

/** What a started flow is known by, and where to send the user. */
export interface StartedFlow {
  auth_id: string;
  url: string;
}

/** Begins a way to the provider and back, for which the user has `flow_ttl_ms`. */
export async function startFlow(
  context: VaultContext,
  provider: ProviderRow,
  request: FlowRequest,
): Promise<StartedFlow> {
  const { tenant_id, user_id, started_by, agent_id = null, is_default, renews } = request;
  const redirect_uri = redirectUriOf(provider, request.base_url);
  const auth_id = newId();
  const state = `${auth_id}.${randomBytes(32).toString("base64url")}`;
  const verifier = provider.uses_pkce ? newVerifier() : undefined;
  // A token that is granted anew keeps what it was good for: its other users would ask for that next.
  const scopes = [...new Set([...(renews ? (JSON.parse(renews.scopes) as string[]) : []), ...request.scopes])];
  const url = await authorizationUrl(provider, { redirect_uri, scopes, state, verifier });
  const flow = {
    auth_id,
    tenant_id,
    provider_id: provider.provider_id,
    user_id,
    started_by,
    agent_id,
    token_id: renews?.token_id ?? null,
    scopes: JSON.stringify(scopes),
    redirect_uri,
    is_default: is_default ? 1 : 0,
    verifier: verifier === undefined ? null : context.seal.seal(verifier, verifierPlace({ tenant_id, auth_id })),
    state_digest: digestOf(state),
  };
  await context.database.write((tx) => insertFlow(tx, flow, context.settings.flow_ttl_ms));
  return { auth_id, url };
}

export const verifierPlace = ({ tenant_id, auth_id }: { tenant_id: string; auth_id: string }): Place => ({
  tenant_id,
  table: "oauth_flows",
  row_id: auth_id,
  column: "verifier",
});

export const digestOf = (state: string): string => createHash("sha256").update(state).digest("hex");

/** Our own callback for a provider. */
export const callbackUrl = (base_url: string, provider_id: string): string =>
  `${base_url.replace(/\/$/, "")}/v2/auth/callback/${encodeURIComponent(provider_id)}`;

/**
 * Where the provider sends the user back to. It is fixed here, from what the operator has set, and nothing of a request can
 * change it but the address at which a server on loopback was called.
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
