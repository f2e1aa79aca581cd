import * as oauth from "oauth4webapi";
import type { JsonObject } from "../../platform/lib/json/json.ts";
import type { VaultContext } from "../context.ts";
import type { ProviderRow } from "../storage/schema.ts";
import type { TokenSecret } from "../tokens/token-secret.ts";
import { openClientSecret } from "./provider-secret.ts";
import { grantedScopes, type Quirks, quirksOf } from "./quirks.ts";
import { readTokenResponse } from "./token-response.ts";

/** What it takes to ask a provider for something. */
export type ProviderAccess = Pick<VaultContext, "fetch" | "fetch_rules" | "seal" | "clock" | "settings">;

/** What a provider has granted. */
export interface Grant {
  secret: TokenSecret;
  scopes: string[];
  /** Milliseconds since the epoch; null when it does not expire, as far as the provider says. */
  expires_at: number | null;
  metadata: JsonObject;
}

/** Where the user is sent. */
export interface AuthorizationRequest {
  redirect_uri: string;
  scopes: readonly string[];
  state: string;
  /** PKCE's secret half; undefined where the provider does not use it. */
  verifier: string | undefined;
}

export async function authorizationUrl(provider: ProviderRow, request: AuthorizationRequest): Promise<string> {
  const quirks = quirksOf(provider);
  const url = new URL(provider.auth_url);
  // What is configured comes first: it cannot take the place of what protects the flow.
  const extra = JSON.parse(provider.authorization_params) as Record<string, string>;
  for (const [name, value] of Object.entries(extra)) url.searchParams.set(name, String(value));
  const scopes = scopesToAsk(request.scopes, quirks);
  if (scopes.length > 0) url.searchParams.set(quirks.scope_parameter, scopes.join(quirks.scope_separator));
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

export const newVerifier = (): string => oauth.generateRandomCodeVerifier();

/** A user who is back, with what the flow remembers of the way there. */
export interface CodeReturned {
  code: string;
  /** RFC 9207: who says that it sent the user back. */
  iss: string | undefined;
  redirect_uri: string;
  verifier: string | undefined;
  scopes: readonly string[];
}

/** @throws what {@link failureOf} explains; also when `iss` is not the provider's issuer */
export async function exchangeCode(access: ProviderAccess, provider: ProviderRow, back: CodeReturned): Promise<Grant> {
  const { as, client, authentication, quirks } = await partiesOf(access, provider);
  const answer = new URLSearchParams({ code: back.code });
  if (back.iss !== undefined && provider.issuer !== null) answer.set("iss", back.iss);
  // The state was compared with the stored one before the flow was claimed.
  const checked = oauth.validateAuthResponse(as, client, answer, oauth.skipStateCheck);
  const response = await oauth.authorizationCodeGrantRequest(
    as,
    client,
    authentication,
    checked,
    back.redirect_uri,
    back.verifier ?? oauth.nopkce,
    { ...requestOptions(access), additionalParameters: additional(provider, quirks, back.scopes) },
  );
  const { metadata, token_type, ...read } = await readTokenResponse(response, quirks);
  const granted = await oauth.processAuthorizationCodeResponse(as, client, read.response);
  return toGrant(access, granted, { asked: back.scopes, quirks, metadata, token_type });
}

/**
 * @param scopes those that the token has
 * @returns the grant, with the old refresh token when the provider sends no new one
 * @throws what {@link failureOf} explains
 */
export async function refreshGrant(
  access: ProviderAccess,
  provider: ProviderRow,
  refresh_token: string,
  scopes: readonly string[],
): Promise<Grant> {
  const { as, client, authentication, quirks } = await partiesOf(access, provider);
  const response = await oauth.refreshTokenGrantRequest(as, client, authentication, refresh_token, {
    ...requestOptions(access),
    additionalParameters: additional(provider, quirks, scopes),
  });
  const { metadata, token_type, ...read } = await readTokenResponse(response, quirks);
  const granted = await oauth.processRefreshTokenResponse(as, client, read.response);
  return toGrant(access, { refresh_token, ...granted }, { asked: scopes, quirks, metadata, token_type });
}

/** The provider and ourselves, as the OAuth library wants them. */
export async function partiesOf(access: Pick<ProviderAccess, "seal">, provider: ProviderRow) {
  const { auth_url, token_url, revocation_url, client_id } = provider;
  const as: oauth.AuthorizationServer = {
    issuer: provider.issuer ?? new URL(auth_url).origin,
    token_endpoint: token_url,
    ...(revocation_url && { revocation_endpoint: revocation_url }),
  };
  const client: oauth.Client = { client_id };
  return { as, client, authentication: authenticationOf(access, provider), quirks: quirksOf(provider) };
}

function authenticationOf({ seal }: Pick<ProviderAccess, "seal">, provider: ProviderRow): oauth.ClientAuth {
  const secret = openClientSecret(seal, provider);
  if (!secret || provider.token_endpoint_auth_method === "none") return oauth.None();
  return provider.token_endpoint_auth_method === "client_secret_basic"
    ? oauth.ClientSecretBasic(secret)
    : oauth.ClientSecretPost(secret);
}

/** Of every request to a provider: which addresses are allowed is for our fetch to say, not for the library. */
export const requestOptions = ({ fetch, fetch_rules, settings }: ProviderAccess) => ({
  [oauth.customFetch]: (url: string, init: object) => fetch(url, init as RequestInit),
  [oauth.allowInsecureRequests]: fetch_rules.allow_loopback,
  signal: AbortSignal.timeout(settings.provider_timeout_ms),
});

const scopesToAsk = (scopes: readonly string[], { extra_scopes }: Quirks): string[] => [
  ...new Set([...scopes, ...extra_scopes]),
];

const additional = (provider: ProviderRow, quirks: Quirks, scopes: readonly string[]): Record<string, string> => ({
  ...(provider.resource && { resource: provider.resource }),
  ...(quirks.scope_on_exchange && {
    [quirks.scope_parameter]: scopesToAsk(scopes, quirks).join(quirks.scope_separator),
  }),
});

function toGrant(
  { clock }: Pick<ProviderAccess, "clock">,
  granted: oauth.TokenEndpointResponse,
  {
    asked,
    quirks,
    metadata,
    token_type,
  }: {
    asked: readonly string[];
    quirks: Quirks;
    metadata: JsonObject;
    token_type: string | undefined;
  },
): Grant {
  const { access_token, refresh_token, expires_in, scope } = granted;
  const lifetime_s = expires_in ?? (refresh_token === undefined ? undefined : quirks.assumed_lifetime_s);
  return {
    secret: { access_token, refresh_token, token_type },
    scopes: grantedScopes(scope, asked, quirks),
    expires_at: lifetime_s === undefined ? null : clock.now() + Math.round(lifetime_s * 1000),
    metadata,
  };
}
