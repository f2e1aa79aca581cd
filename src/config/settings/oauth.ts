import { ConfigError } from "../../platform/errors.ts";
import { isObject } from "../../platform/lib/json/json.ts";
import { duration, enabled, MAX_RETENTION_MS, setting, text } from "./setting.ts";

/** Scope names by claim name and claim value. */
export type OidcScopes = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

/** Settings of the JWTs of callers and of the OAuth tokens that agents use. */
export const oauthSettings = {
  oidc_issuer: setting("THREADMILL_OIDC_ISSUER", text, {
    meaning:
      "URL of the OpenID provider whose JWTs are accepted. It must equal the `iss` claim of the JWTs. See [Access](access.md#jwts).",
  }),
  oidc_audience: setting("THREADMILL_OIDC_AUDIENCE", text, {
    meaning: "Value that the `aud` claim of accepted JWTs must contain. Required if an issuer is set.",
  }),
  oidc_scopes: setting("THREADMILL_OIDC_SCOPES", readOidcScopes, {
    default: "{}",
    shown_default: "none",
    meaning:
      'JSON that maps claim values to additional [scopes](access.md#scopes), such as `{"groups": {"platform": ["deployments", "providers"]}}`.',
  }),
  allow_loopback_oauth: setting("THREADMILL_ALLOW_LOOPBACK_OAUTH", enabled, {
    default: "0",
    shown_default: "off",
    meaning:
      "Whether the OIDC issuer and OAuth providers may use loopback addresses, over https or plain http. Intended for development and tests.",
  }),
  flow_ttl_ms: setting("THREADMILL_OAUTH_FLOW_TIMEOUT", duration(), {
    default: "10m",
    meaning: "Time limit for a user to grant access at an OAuth provider.",
  }),
  provider_timeout_ms: setting("THREADMILL_OAUTH_TIMEOUT", duration(), {
    default: "10s",
    meaning: "Time limit for a request to an OAuth provider.",
  }),
  token_event_retention_ms: setting("THREADMILL_TOKEN_EVENT_RETENTION", duration(86_400_000, MAX_RETENTION_MS), {
    default: "90d",
    meaning: "Retention period of OAuth token events.",
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
    `${name} must be JSON that maps claim values to scopes, such as {"groups": {"platform": ["deployments"]}}, but is "${value}".`,
  );
}
