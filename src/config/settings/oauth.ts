import { ConfigError } from "../../platform/errors.ts";
import { isObject } from "../../platform/lib/json/json.ts";
import { duration, enabled, optional, setting, text } from "./setting.ts";

/** Names of scopes by a claim and one of its values. */
export type OidcScopes = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

const MAX_RETENTION_MS = 36_500 * 86_400_000;

/** JWTs of callers, and the OAuth tokens that agents use. */
export const oauthSettings = {
  oidc_issuer: optional({
    env: ["THREADMILL_OIDC_ISSUER"],
    visibility: "advanced",
    read: text,
    meaning: "OpenID provider whose JWTs are accepted, exactly as in their `iss` claim. See [Access](access.md#jwts).",
  }),
  oidc_audience: optional({
    env: ["THREADMILL_OIDC_AUDIENCE"],
    visibility: "advanced",
    read: text,
    meaning: "Value that the `aud` claim of those JWTs must contain. Set it together with the issuer.",
  }),
  oidc_scopes: setting({
    env: ["THREADMILL_OIDC_SCOPES"],
    visibility: "advanced",
    default: "{}",
    shown_default: "none",
    read: readOidcScopes,
    meaning:
      'JSON that maps claims and their values to [scopes](access.md#scopes) beyond the default ones, such as `{"groups": {"platform": ["deployments", "providers"]}}`.',
  }),
  allow_loopback_oauth: setting({
    env: ["THREADMILL_ALLOW_LOOPBACK_OAUTH"],
    visibility: "advanced",
    default: "0",
    shown_default: "off",
    read: enabled,
    meaning: "`1` allows an issuer and OAuth providers on loopback, also over http, for development and tests.",
  }),
  flow_ttl_ms: setting({
    env: ["THREADMILL_OAUTH_FLOW_TIMEOUT"],
    visibility: "advanced",
    default: "10m",
    read: duration(),
    meaning: "Time that a user has to grant access at an OAuth provider.",
  }),
  provider_timeout_ms: setting({
    env: ["THREADMILL_OAUTH_TIMEOUT"],
    visibility: "advanced",
    default: "10s",
    read: duration(),
    meaning: "Time limit of a request to an OAuth provider.",
  }),
  token_event_retention_ms: setting({
    env: ["THREADMILL_TOKEN_EVENT_RETENTION"],
    visibility: "advanced",
    default: "90d",
    read: duration(86_400_000, MAX_RETENTION_MS),
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
