import * as oauth from "oauth4webapi";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import type { VaultContext } from "../context.ts";
import type { ProviderRow } from "../storage/schema.ts";
import type { TokenSecret } from "../tokens/token-secret.ts";
import { grantedScopes, type ProviderProfile, profileOf } from "./provider-profiles.ts";
import { openClientSecret } from "./provider-secret.ts";

export type ProviderContext = Pick<VaultContext, "fetch" | "fetch_rules" | "seal" | "clock" | "settings">;

export interface Grant {
  secret: TokenSecret;
  scopes: string[];
  /** Milliseconds since the epoch; null when the provider reports no expiry. */
  expires_at: number | null;
  metadata: JsonObject;
}

export interface AuthorizationRequest {
  redirect_uri: string;
  scopes: readonly string[];
  state: string;
  /** PKCE code verifier; undefined if the provider does not use PKCE. */
  verifier: string | undefined;
}

export async function authorizationUrl(provider: ProviderRow, request: AuthorizationRequest): Promise<string> {
  const profile = profileOf(provider);
  const url = new URL(provider.auth_url);
  // Configured parameters are set first, so that they cannot replace the parameters that protect the flow.
  const extra = JSON.parse(provider.authorization_params) as Record<string, string>;
  for (const [name, value] of Object.entries(extra)) url.searchParams.set(name, String(value));
  const scopes = requestedScopes(request.scopes, profile);
  if (scopes.length > 0) url.searchParams.set(profile.scope_parameter, scopes.join(profile.scope_separator));
  if (provider.resource) url.searchParams.set("resource", provider.resource);
  url.searchParams.set("response_type", "code");
  url.searchParams.set("client_id", provider.client_id);
  url.searchParams.set("redirect_uri", request.redirect_uri);
  url.searchParams.set("state", request.state);
  if (request.verifier !== undefined) {
    const isPlain = provider.code_challenge_method === "plain";
    const challenge = isPlain ? request.verifier : await oauth.calculatePKCECodeChallenge(request.verifier);
    url.searchParams.set("code_challenge", challenge);
    url.searchParams.set("code_challenge_method", isPlain ? "plain" : "S256");
  }
  return url.href;
}

/** An authorization response, with the stored parameters of its flow. */
export interface AuthorizationResponse {
  code: string;
  /** RFC 9207: the issuer that sent the response. */
  iss: string | undefined;
  redirect_uri: string;
  verifier: string | undefined;
  scopes: readonly string[];
}

/** @throws errors that {@link describeFailure} describes, including when `iss` is not the provider's issuer */
export async function exchangeCode(
  context: ProviderContext,
  provider: ProviderRow,
  authorization: AuthorizationResponse,
): Promise<Grant> {
  const { as, client, authentication, profile } = oauthConfigOf(context, provider);
  const { code, iss, redirect_uri, verifier, scopes } = authorization;
  const parameters = new URLSearchParams({ code });
  if (iss !== undefined && provider.issuer !== null) parameters.set("iss", iss);
  // The state was verified before the flow was claimed.
  const validated = oauth.validateAuthResponse(as, client, parameters, oauth.skipStateCheck);
  const pkce = verifier ?? oauth.nopkce;
  const options = { ...requestOptions(context), additionalParameters: additionalParameters(provider, profile, scopes) };
  const { response, ...details } = await readTokenResponse(
    await oauth.authorizationCodeGrantRequest(as, client, authentication, validated, redirect_uri, pkce, options),
    profile,
  );
  const granted = await oauth.processAuthorizationCodeResponse(as, client, response);
  return toGrant(context, granted, { requested: scopes, profile, ...details });
}

/**
 * @returns the grant, with the old refresh token when the provider returns no new one
 * @throws errors that {@link describeFailure} describes
 */
export async function refreshGrant(
  context: ProviderContext,
  provider: ProviderRow,
  refresh_token: string,
  scopes: readonly string[],
): Promise<Grant> {
  const { as, client, authentication, profile } = oauthConfigOf(context, provider);
  const options = { ...requestOptions(context), additionalParameters: additionalParameters(provider, profile, scopes) };
  const { response, ...details } = await readTokenResponse(
    await oauth.refreshTokenGrantRequest(as, client, authentication, refresh_token, options),
    profile,
  );
  const granted = await oauth.processRefreshTokenResponse(as, client, response);
  return toGrant(context, { refresh_token, ...granted }, { requested: scopes, profile, ...details });
}

export function oauthConfigOf({ seal }: Pick<ProviderContext, "seal">, provider: ProviderRow) {
  const { auth_url, token_url, revocation_url, client_id } = provider;
  const as: oauth.AuthorizationServer = {
    issuer: provider.issuer ?? new URL(auth_url).origin,
    token_endpoint: token_url,
    ...(revocation_url && { revocation_endpoint: revocation_url }),
  };
  const client: oauth.Client = { client_id };
  return { as, client, authentication: clientAuthOf(seal, provider), profile: profileOf(provider) };
}

function clientAuthOf(seal: VaultContext["seal"], provider: ProviderRow): oauth.ClientAuth {
  const secret = openClientSecret(seal, provider);
  if (!secret || provider.token_endpoint_auth_method === "none") return oauth.None();
  return provider.token_endpoint_auth_method === "client_secret_basic"
    ? oauth.ClientSecretBasic(secret)
    : oauth.ClientSecretPost(secret);
}

/** Options of every request to a provider. The context's `fetch`, not the library, restricts the addresses. */
export const requestOptions = ({ fetch, fetch_rules, settings }: ProviderContext) => ({
  [oauth.customFetch]: (url: string, init: object) => fetch(url, init as RequestInit),
  [oauth.allowInsecureRequests]: fetch_rules.allow_loopback,
  signal: AbortSignal.timeout(settings.provider_timeout_ms),
});

const requestedScopes = (scopes: readonly string[], { required_scopes }: ProviderProfile): string[] => [
  ...new Set([...scopes, ...required_scopes]),
];

const additionalParameters = (
  provider: ProviderRow,
  profile: ProviderProfile,
  scopes: readonly string[],
): Record<string, string> => ({
  ...(provider.resource && { resource: provider.resource }),
  ...(profile.scope_in_token_requests && {
    [profile.scope_parameter]: requestedScopes(scopes, profile).join(profile.scope_separator),
  }),
});

interface GrantDetails extends Omit<TokenResponse, "response"> {
  requested: readonly string[];
  profile: ProviderProfile;
}

function toGrant(
  { clock }: Pick<ProviderContext, "clock">,
  { access_token, refresh_token, expires_in, scope }: oauth.TokenEndpointResponse,
  { requested, profile, metadata, token_type }: GrantDetails,
): Grant {
  const lifetime_s = expires_in ?? (refresh_token === undefined ? undefined : profile.assumed_lifetime_s);
  return {
    secret: { access_token, refresh_token, token_type },
    scopes: grantedScopes(scope, requested, profile),
    expires_at: lifetime_s === undefined ? null : clock.now() + Math.round(lifetime_s * 1000),
    metadata,
  };
}

/** A token response in the format of RFC 6749, without the `id_token`, and the values that are stored with the token. */
interface TokenResponse {
  response: Response;
  metadata: JsonObject;
  /** Token type in the provider's spelling. The normalized response always contains `bearer`, the only supported type. */
  token_type: string | undefined;
}

async function readTokenResponse(received: Response, profile: ProviderProfile): Promise<TokenResponse> {
  const failed = (status: number, body?: JsonObject) => ({
    response: withStatus(received.ok ? status : received.status, body),
    metadata: {},
    token_type: undefined,
  });
  const body = parseBody(await received.text(), received.headers.get("content-type"));
  if (!body) return failed(502);
  const nested = profile.user_token_field === undefined ? undefined : body[profile.user_token_field];
  const token = isObject(nested) && nested.access_token !== undefined ? nested : body;
  // GitHub and Slack return errors with status 200.
  const isError = !received.ok || (typeof body.error === "string" && token.access_token === undefined);
  if (isError) return failed(400, { error: body.error });
  const metadata = Object.fromEntries(
    profile.metadata_fields.filter((name) => body[name] !== undefined).map((name) => [name, body[name]]),
  );
  const { token_type } = token;
  return {
    response: withStatus(200, standardFields(token)),
    metadata,
    token_type: typeof token_type === "string" ? token_type : undefined,
  };
}

/** 95 years. An unbounded lifetime could exceed the range of timestamps. */
const MAX_LIFETIME_S = 3e9;

/** Normalizes fields that providers omit or return in other formats. */
function standardFields({ access_token, refresh_token, expires_in, scope }: JsonObject): JsonObject {
  const lifetime = Math.min(Number(expires_in ?? Number.NaN), MAX_LIFETIME_S);
  return {
    access_token,
    token_type: "bearer",
    // Some providers return 0 or a value that is not a number for "does not expire".
    ...(lifetime > 0 && { expires_in: lifetime }),
    ...(typeof refresh_token === "string" && refresh_token !== "" && { refresh_token }),
    ...(typeof scope === "string" && { scope }),
    ...(Array.isArray(scope) && { scope: scope.join(" ") }),
  };
}

function parseBody(text: string, type: string | null): JsonObject | undefined {
  if (/^application\/x-www-form-urlencoded\b/i.test(type ?? "")) return Object.fromEntries(new URLSearchParams(text));
  try {
    const body: unknown = JSON.parse(text);
    return isObject(body) ? body : undefined;
  } catch {
    return undefined;
  }
}

const withStatus = (status: number, body: JsonObject = {}): Response =>
  new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json" } });
