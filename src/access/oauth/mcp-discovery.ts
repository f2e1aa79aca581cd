import * as oauth from "oauth4webapi";
import type { Caller } from "../../platform/contract/caller.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import { urlRefusal } from "../../platform/lib/safe-fetch/safe-fetch.ts";
import type { VaultContext } from "../context.ts";
import type { McpDiscoverRequest } from "../contract/flows.ts";
import type { OAuthProvider } from "../contract/records.ts";
import { findProvider, insertProvider, type NewProvider } from "../storage/providers.ts";
import { providerOf } from "../wire.ts";
import { callbackUrl } from "./flow-start.ts";
import { type ProviderContext, requestOptions } from "./oauth-client.ts";
import { describeFailure } from "./provider-errors.ts";
import { sealClientSecret } from "./provider-secret.ts";

/** Name of the registered client, which users see on consent pages. */
const CLIENT_NAME = "Threadmill";

/**
 * Creates a provider from the metadata of an MCP server and a client that is registered at its authorization server.
 *
 * @throws ApiError oauth_provider_exists, no_public_url, discovery_failed
 */
export async function discoverProvider(
  context: VaultContext,
  { tenant_id }: Pick<Caller, "tenant_id">,
  body: McpDiscoverRequest,
  base_url: string | undefined,
): Promise<OAuthProvider> {
  const { provider_id } = body;
  // Checked first, so that no unused client is registered.
  const already_exists = new ApiError("oauth_provider_exists", { provider_id });
  if (await findProvider(context.database.read, tenant_id, provider_id)) throw already_exists;
  if (base_url === undefined) throw new ApiError("no_public_url");
  const row = await discoverAndRegister(context, tenant_id, body, callbackUrl(base_url, provider_id));
  const provider = await context.database.write((tx) => insertProvider(tx, row));
  if (!provider) throw already_exists;
  return providerOf(provider);
}

async function discoverAndRegister(
  context: VaultContext,
  tenant_id: string,
  body: McpDiscoverRequest,
  redirect_uri: string,
): Promise<NewProvider> {
  const refusal = urlRefusal(body.mcp_server_url, context.fetch_rules);
  if (refusal !== undefined) throw new ApiError("discovery_failed", { reason: refusal });
  try {
    const found = await discover(context, body.mcp_server_url);
    // The same address rules apply to a provider that is created manually.
    const { authorization_endpoint, token_endpoint, revocation_endpoint } = found.as;
    for (const url of [authorization_endpoint, token_endpoint, revocation_endpoint])
      if (url !== undefined && urlRefusal(url, context.fetch_rules) !== undefined)
        throw new DiscoveryError("the authorization server has an endpoint at an address that is not allowed.");
    const client = await register(context, found.as, redirect_uri);
    return rowOf(context, tenant_id, body, found, client);
  } catch (error) {
    if (error instanceof DiscoveryError) throw new ApiError("discovery_failed", { reason: error.message });
    throw error;
  }
}

function rowOf(
  { seal }: VaultContext,
  tenant_id: string,
  { provider_id, name, mcp_server_url }: McpDiscoverRequest,
  { as, resource }: Discovered,
  { client_secret, ...client }: Awaited<ReturnType<typeof register>>,
): NewProvider {
  const key = { tenant_id, id: newId() };
  return {
    ...key,
    ...client,
    provider_id,
    name,
    client_secret: client_secret === undefined ? null : sealClientSecret(seal, key, client_secret),
    auth_url: as.authorization_endpoint,
    token_url: as.token_endpoint,
    revocation_url: as.revocation_endpoint,
    issuer: as.issuer,
    resource,
    uses_pkce: 1,
    code_challenge_method: "S256",
    mcp_server_url,
    is_dynamic_client: 1,
    authorization_params: "{}",
    allowed_redirect_uris: "[]",
  };
}

interface Discovered {
  /** RFC 8707 resource indicator for token requests. */
  resource: string;
  as: oauth.AuthorizationServer & { authorization_endpoint: string; token_endpoint: string };
}

/** In order of preference: with a client secret, a stolen code or refresh token alone is useless. */
const AUTH_METHODS = ["client_secret_post", "client_secret_basic", "none"] as const;

/** The message is shown to the caller. */
class DiscoveryError extends Error {}

/**
 * Reads the metadata of an MCP server (RFC 9728) and of its authorization server (RFC 8414 or OpenID Connect). An MCP server without
 * metadata is its own authorization server, as in older versions of MCP. @throws DiscoveryError
 */
async function discover(context: ProviderContext, mcp_server_url: string): Promise<Discovered> {
  const server = new URL(mcp_server_url);
  const metadata = await resourceMetadata(context, server);
  const [issuer = server.origin] = metadata?.authorization_servers ?? [];
  const as = await authorizationServerMetadata(context, issuer);
  const { authorization_endpoint, token_endpoint, code_challenge_methods_supported: methods } = as;
  if (!authorization_endpoint || !token_endpoint) {
    throw new DiscoveryError(
      `the metadata of the authorization server ${issuer} lacks an authorization_endpoint or a token_endpoint.`,
    );
  }
  if (methods && !methods.includes("S256")) {
    throw new DiscoveryError(`the authorization server ${issuer} does not support PKCE with S256.`);
  }
  return {
    resource: metadata?.resource ?? mcp_server_url,
    as: { ...as, authorization_endpoint, token_endpoint },
  };
}

/** Registers a client (RFC 7591). @throws DiscoveryError */
async function register(context: ProviderContext, as: oauth.AuthorizationServer, redirect_uri: string) {
  if (as.registration_endpoint === undefined) {
    throw new DiscoveryError(
      `the authorization server ${as.issuer} does not support dynamic client registration. Register a client there manually, then create a provider with the client ID.`,
    );
  }
  // The default of RFC 8414, section 2.
  const supported = as.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
  const metadata = {
    client_name: CLIENT_NAME,
    redirect_uris: [redirect_uri],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: AUTH_METHODS.find((method) => supported.includes(method)) ?? "none",
  };
  const client = await tryRequest("to the registration endpoint", async () => {
    const response = await oauth.dynamicClientRegistrationRequest(as, metadata, requestOptions(context));
    return oauth.processDynamicClientRegistrationResponse(response);
  });
  const { client_id, client_secret, token_endpoint_auth_method = metadata.token_endpoint_auth_method } = client;
  const method = AUTH_METHODS.find((known) => known === token_endpoint_auth_method);
  if (!method)
    throw new DiscoveryError(
      `the authorization server ${as.issuer} requires the client authentication method ${JSON.stringify(token_endpoint_auth_method)}, which is not supported. Supported methods: ${AUTH_METHODS.join(", ")}.`,
    );
  return { client_id, client_secret: client_secret as string | undefined, token_endpoint_auth_method: method };
}

async function resourceMetadata(context: ProviderContext, server: URL): Promise<oauth.ResourceServer | undefined> {
  const announced = await announcedMetadata(context, server);
  if (announced) return announced;
  // First the metadata for the path, then the metadata for the whole origin.
  for (const resource of new Set([server.href, `${server.origin}/`])) {
    const found = await fetchMetadata(resource, (url) => oauth.resourceDiscoveryRequest(url, requestOptions(context)));
    if (found) return validateResource(found, server);
  }
  return undefined;
}

/** The metadata at the URL that the server announces in its 401 response (RFC 9728, section 5.1). */
async function announcedMetadata(context: ProviderContext, server: URL): Promise<oauth.ResourceServer | undefined> {
  const { signal } = requestOptions(context);
  const response = await tryRequest("to the MCP server", () => context.fetch(server, { signal, redirect: "manual" }));
  const challenge = response.status === 401 ? response.headers.get("www-authenticate") : null;
  const address = /\bresource_metadata="([^"]+)"/i.exec(challenge ?? "")?.[1];
  if (address === undefined || !URL.canParse(address)) return undefined;
  const found = await fetchMetadata(address, (url) =>
    context.fetch(url, { signal, headers: { accept: "application/json" } }),
  );
  return found && validateResource(found, server);
}

/** So that /team is not a prefix of /team-a. */
const asFolder = (path: string): string => path.replace(/\/?$/, "/");

/** RFC 9728, section 3.3: metadata must name the MCP server as the resource. Otherwise, a server could obtain tokens for another one. */
function validateResource(metadata: JsonObject, server: URL): oauth.ResourceServer {
  const { resource, authorization_servers } = metadata;
  const url = typeof resource === "string" && URL.canParse(resource) ? new URL(resource) : undefined;
  const matches = url?.origin === server.origin && asFolder(server.pathname).startsWith(asFolder(url.pathname));
  if (!matches) throw new DiscoveryError(`the MCP server's metadata describes a resource other than ${server.href}.`);
  const servers = Array.isArray(authorization_servers)
    ? authorization_servers.filter((entry) => URL.canParse(entry))
    : [];
  return { resource: resource as string, authorization_servers: servers as string[] };
}

async function authorizationServerMetadata(
  context: ProviderContext,
  issuer: string,
): Promise<oauth.AuthorizationServer> {
  const url = new URL(issuer);
  for (const algorithm of ["oauth2", "oidc"] as const) {
    const request = () => oauth.discoveryRequest(url, { ...requestOptions(context), algorithm });
    const response = await tryRequest("to the authorization server", request);
    if (response.status !== 200) continue;
    // Rejects metadata of another issuer.
    return tryRequest("for the metadata of the authorization server", () =>
      oauth.processDiscoveryResponse(url, response),
    );
  }
  throw new DiscoveryError(`the authorization server ${issuer} did not return metadata.`);
}

async function fetchMetadata(
  address: string,
  request: (url: URL) => Promise<Response>,
): Promise<JsonObject | undefined> {
  const response = await tryRequest("for the metadata of the MCP server", () => request(new URL(address)));
  if (response.status !== 200) return undefined;
  const body: unknown = await response.json().catch(() => undefined);
  return isObject(body) ? body : undefined;
}

async function tryRequest<T>(target: string, send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (error) {
    throw new DiscoveryError(`the request ${target} failed (${describeFailure(error).reason}).`, { cause: error });
  }
}
