import type { Caller } from "../../platform/contract/caller.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import { refusalOf } from "../../platform/lib/safe-fetch.ts";
import type { VaultContext } from "../context.ts";
import type { McpDiscoverRequest } from "../contract/flows.ts";
import type { OAuthProvider } from "../contract/records.ts";
import { findProvider, insertProvider } from "../storage/providers.ts";
import { providerOf } from "../wire.ts";
import { type Discovered, DiscoveryError, discover, type RegisteredClient, register } from "./discovery.ts";
import { callbackUrl } from "./flow-start.ts";
import { sealClientSecret } from "./provider-secret.ts";

/** What we are called where users see for whom they grant something. */
const CLIENT_NAME = "Threadmill";

/**
 * Makes a provider of what an MCP server says of itself, and of a client that its authorization server registers for us.
 *
 * @param base_url our own address, as users' browsers reach it; undefined when it is not known
 * @throws ApiError oauth_provider_exists, no_public_url, discovery_failed
 */
export async function discoverProvider(
  context: VaultContext,
  { tenant_id }: Pick<Caller, "tenant_id">,
  body: McpDiscoverRequest,
  base_url: string | undefined,
): Promise<OAuthProvider> {
  const { provider_id } = body;
  // Before anything is registered that nobody would use.
  const taken = new ApiError("oauth_provider_exists", { provider_id });
  if (await findProvider(context.database.read, tenant_id, provider_id)) throw taken;
  if (base_url === undefined) throw new ApiError("no_public_url");
  const found = await look(context, body, callbackUrl(base_url, provider_id));
  const provider = await context.database.write((tx) => insertProvider(tx, rowOf(context, tenant_id, body, found)));
  if (!provider) throw taken;
  return providerOf(provider);
}

interface Found extends Discovered {
  client: RegisteredClient;
}

async function look(
  context: VaultContext,
  { mcp_server_url }: McpDiscoverRequest,
  redirect_uri: string,
): Promise<Found> {
  const refusal = refusalOf(mcp_server_url, context.fetch_rules);
  if (refusal !== undefined) throw new ApiError("discovery_failed", { reason: refusal });
  try {
    const found = await discover(context, mcp_server_url);
    requireAllowed(context, found);
    return { ...found, client: await register(context, found.as, { client_name: CLIENT_NAME, redirect_uri }) };
  } catch (error) {
    if (error instanceof DiscoveryError) throw new ApiError("discovery_failed", { reason: error.message });
    throw error;
  }
}

/** The same addresses are refused here as where somebody writes them down himself. */
function requireAllowed({ fetch_rules }: VaultContext, { as }: Discovered): void {
  for (const url of [as.authorization_endpoint, as.token_endpoint, as.revocation_endpoint]) {
    if (url !== undefined && refusalOf(url, fetch_rules) !== undefined) {
      throw new DiscoveryError("its authorization server names an address that is not allowed.");
    }
  }
}

function rowOf({ seal }: VaultContext, tenant_id: string, body: McpDiscoverRequest, { as, client, resource }: Found) {
  const id = newId();
  const secret = client.client_secret;
  return {
    id,
    tenant_id,
    provider_id: body.provider_id,
    name: body.name,
    client_id: client.client_id,
    client_secret: secret === undefined ? null : sealClientSecret(seal, { tenant_id, id }, secret),
    auth_url: as.authorization_endpoint,
    token_url: as.token_endpoint,
    revocation_url: as.revocation_endpoint ?? null,
    issuer: as.issuer,
    resource,
    uses_pkce: 1,
    code_challenge_method: "S256",
    provider_type: null,
    mcp_server_url: body.mcp_server_url,
    token_endpoint_auth_method: client.token_endpoint_auth_method,
    is_dynamic_client: 1,
    authorization_params: "{}",
    allowed_redirect_uris: "[]",
    default_redirect_uri: null,
  };
}
