import { ConfigError } from "../../platform/errors.ts";
import { isObject } from "../../platform/lib/json/json.ts";
import { duration, enabled, setting, text } from "./setting.ts";

/** Names of scopes by a claim and one of its values. */
export type OidcScopes = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

const MAX_RETENTION_MS = 36_500 * 86_400_000;

/** JWTs of callers, and the OAuth tokens that agents use. */
export const oauthSettings = {
  oidc_issuer: setting("THREADMILL_OIDC_ISSUER", text, {
    meaning: "OpenID provider whose JWTs are accepted, exactly as in their `iss` claim. See [Access](access.md#jwts).",
  }),
  oidc_audience: setting("THREADMILL_OIDC_AUDIENCE", text, {
    meaning: "Value that the `aud` claim of those JWTs must contain. Set it together with the issuer.",
  }),
  oidc_scopes: setting("THREADMILL_OIDC_SCOPES", readOidcScopes, {
    default: "{}",
    shown_default: "none",
    meaning:
      'JSON that maps claims and their values to [scopes](access.md#scopes) beyond the default ones, such as `{"groups": {"platform": ["deployments", "providers"]}}`.',
  }),
  allow_loopback_oauth: setting("THREADMILL_ALLOW_LOOPBACK_OAUTH", enabled, {
    default: "0",
    shown_default: "off",
    meaning: "`1` allows an issuer and OAuth providers on loopback, also over http, for development and tests.",
  }),
  flow_ttl_ms: setting("THREADMILL_OAUTH_FLOW_TIMEOUT", duration(), {
    default: "10m",
    meaning: "Time that a user has to grant access at an OAuth provider.",
  }),
  provider_timeout_ms: setting("THREADMILL_OAUTH_TIMEOUT", duration(), {
    default: "10s",
    meaning: "Time limit of a request to an OAuth provider.",
  }),
  token_event_retention_ms: setting("THREADMILL_TOKEN_EVENT_RETENTION", duration(86_400_000, MAX_RETENTION_MS), {
    default: "90d",
    meaning: "How long the event history of OAuth tokens is kept.",
  }),
};

function readOidcScopes(value: string, name: string): OidcScopes {
  const isList = (item: unknown) => Array.isArray(item) && item.every((scope) => typeof scope === "string");
  const isMap = (item: unknown, fits: (value: unknown) => boolean) => isObject(item) && Object.values(item).every(fits);
  try {
    const scopes: unknown = JSON.parse(value);
    if (isMap(scopes, (values) => isMap(values, isList))) return scopes as OidcScopes;
  } catch {}
  throw new ConfigError(
    `${name} must be JSON that maps claims, their values and scopes, such as {"groups": {"platform": ["deployments"]}}, but is "${value}".`,
  );
}
