import * as oauth from "oauth4webapi";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import { type ProviderAccess, requestOptions } from "./client.ts";
import { failureOf } from "./failure.ts";

/** What an MCP server and its authorization server say of themselves. */
export interface Discovered {
  /** RFC 8707: what tokens are asked for. */
  resource: string;
  as: oauth.AuthorizationServer & { authorization_endpoint: string; token_endpoint: string };
}

/** A client that an authorization server has registered for us. */
export interface RegisteredClient {
  client_id: string;
  client_secret: string | undefined;
  token_endpoint_auth_method: AuthMethod;
}

/** In the order of our liking: with a secret a stolen code or refresh token is worth nothing. */
const AUTH_METHODS = ["client_secret_post", "client_secret_basic", "none"] as const;
type AuthMethod = (typeof AUTH_METHODS)[number];

/** Why a server cannot be used; the message is a sentence for the caller. */
export class DiscoveryError extends Error {}

/**
 * Who gives out tokens for an MCP server: its own metadata (RFC 9728) names the authorization server, whose metadata (RFC 8414 or
 * OpenID Connect) names the endpoints. A server without metadata of its own gives out tokens itself, as older ones do.
 *
 * @throws DiscoveryError
 */
export async function discover(access: ProviderAccess, mcp_server_url: string): Promise<Discovered> {
  const server = new URL(mcp_server_url);
  const metadata = await resourceMetadata(access, server);
  const [issuer = server.origin] = metadata?.authorization_servers ?? [];
  const as = await serverMetadata(access, issuer);
  const { authorization_endpoint, token_endpoint, code_challenge_methods_supported: methods } = as;
  if (!authorization_endpoint || !token_endpoint) {
    throw new DiscoveryError("its authorization server names no authorization and token endpoints.");
  }
  if (methods && !methods.includes("S256")) {
    throw new DiscoveryError("its authorization server does not support PKCE with S256.");
  }
  return {
    resource: metadata?.resource ?? mcp_server_url,
    as: { ...as, authorization_endpoint, token_endpoint },
  };
}

/**
 * Registers us at an authorization server (RFC 7591).
 *
 * @throws DiscoveryError
 */
export async function register(
  access: ProviderAccess,
  as: oauth.AuthorizationServer,
  { client_name, redirect_uri }: { client_name: string; redirect_uri: string },
): Promise<RegisteredClient> {
  if (as.registration_endpoint === undefined) {
    throw new DiscoveryError(
      "its authorization server registers no clients by itself. Register one there, and add it as a provider.",
    );
  }
  // RFC 8414, section 2: a server that does not say takes the secret in the header.
  const supported = as.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
  const metadata = {
    client_name,
    redirect_uris: [redirect_uri],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: AUTH_METHODS.find((method) => supported.includes(method)) ?? "none",
  };
  const client = await answered("the registration", async () => {
    const response = await oauth.dynamicClientRegistrationRequest(as, metadata, requestOptions(access));
    return oauth.processDynamicClientRegistrationResponse(response);
  });
  const { client_id, client_secret, token_endpoint_auth_method = metadata.token_endpoint_auth_method } = client;
  const method = AUTH_METHODS.find((known) => known === token_endpoint_auth_method);
  if (!method)
    throw new DiscoveryError("its authorization server wants a client authentication that is not supported.");
  return { client_id, client_secret: client_secret as string | undefined, token_endpoint_auth_method: method };
}

async function resourceMetadata(access: ProviderAccess, server: URL): Promise<oauth.ResourceServer | undefined> {
  const named = await namedMetadata(access, server);
  if (named) return named;
  // With the server's path first; without it a server speaks for all of its paths.
  for (const resource of new Set([server.href, `${server.origin}/`])) {
    const found = await metadataOf(resource, (url) => oauth.resourceDiscoveryRequest(url, requestOptions(access)));
    if (found) return checkedResource(found, server);
  }
  return undefined;
}

/** The metadata that the server names itself where it turns away a caller without a token (RFC 9728, section 5.1). */
async function namedMetadata(access: ProviderAccess, server: URL): Promise<oauth.ResourceServer | undefined> {
  const { signal } = requestOptions(access);
  const answer = await answered("the MCP server", () => access.fetch(server, { signal, redirect: "manual" }));
  const challenge = answer.status === 401 ? answer.headers.get("www-authenticate") : null;
  const address = /\bresource_metadata="([^"]+)"/i.exec(challenge ?? "")?.[1];
  if (address === undefined || !URL.canParse(address)) return undefined;
  const found = await metadataOf(address, (url) =>
    access.fetch(url, { signal, headers: { accept: "application/json" } }),
  );
  return found && checkedResource(found, server);
}

/** RFC 9728, section 3.3: metadata that speaks of another server must not be used, or it could fetch tokens for that one. */
function checkedResource(metadata: JsonObject, server: URL): oauth.ResourceServer {
  const { resource, authorization_servers } = metadata;
  const named = typeof resource === "string" && URL.canParse(resource) ? new URL(resource) : undefined;
  const isOurs = named?.origin === server.origin && server.pathname.startsWith(named.pathname.replace(/\/$/, ""));
  if (!isOurs) throw new DiscoveryError("its metadata speaks of another server.");
  const servers = Array.isArray(authorization_servers) ? authorization_servers.filter((one) => URL.canParse(one)) : [];
  return { resource: resource as string, authorization_servers: servers as string[] };
}

async function serverMetadata(access: ProviderAccess, issuer: string): Promise<oauth.AuthorizationServer> {
  const url = new URL(issuer);
  for (const algorithm of ["oauth2", "oidc"] as const) {
    const request = () => oauth.discoveryRequest(url, { ...requestOptions(access), algorithm });
    const response = await answered("the authorization server", request);
    if (response.status !== 200) continue;
    // Metadata that names another issuer is refused.
    return answered("the authorization server's metadata", () => oauth.processDiscoveryResponse(url, response));
  }
  throw new DiscoveryError("its authorization server has no metadata.");
}

async function metadataOf(address: string, request: (url: URL) => Promise<Response>): Promise<JsonObject | undefined> {
  const response = await answered("the MCP server's metadata", () => request(new URL(address)));
  if (response.status !== 200) return undefined;
  const body: unknown = await response.json().catch(() => undefined);
  return isObject(body) ? body : undefined;
}

async function answered<T>(what: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw new DiscoveryError(`${what} gave no usable answer (${failureOf(error).reason}).`, { cause: error });
  }
}
