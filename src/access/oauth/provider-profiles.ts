import type { ProviderRow } from "../storage/schema.ts";

/** Deviations of a provider from RFC 6749. The default values follow the standard. */
const STANDARD = {
  /** The parameter for user scopes. Some providers use `scope` for app scopes. */
  scope_parameter: "scope" as "scope" | "user_scope",
  scope_separator: " " as " " | ",",
  /** Whether commas also separate the scopes in a response. */
  comma_separated_scopes: false,
  /** Scopes that contain others, which the provider leaves out of the granted scopes. */
  implied_scopes: {} as Readonly<Record<string, readonly string[]>>,
  /** Scopes that are added to every request, because the provider otherwise issues no refresh token. */
  required_scopes: [] as readonly string[],
  /** Whether the code exchange and the refresh also send the scopes. */
  scope_in_token_requests: false,
  /** Response field that contains the user's token, for providers that return the app's token at the top level. */
  user_token_field: undefined as string | undefined,
  metadata_fields: [] as readonly string[],
  /** Assumed lifetime of a refreshable token without `expires_in`, in seconds. */
  assumed_lifetime_s: undefined as number | undefined,
  /** Error codes that, like `invalid_grant`, mean that the refresh token is permanently invalid. */
  permanent_errors: [] as readonly string[],
  /** How tokens are revoked when the provider has no RFC 7009 endpoint. */
  revocation: "none" as "none" | "slack" | "github",
};

export type ProviderProfile = Readonly<typeof STANDARD>;

/**
 * Known deviations, selected by `provider_type` if it is set, else by the host of the token endpoint. Errors with status 200 (GitHub,
 * Slack) are handled for all providers (oauth-client.ts).
 */
const PROFILES: readonly { type?: string; hosts: RegExp; profile: Partial<ProviderProfile> }[] = [
  {
    hosts: /^github\.com$/,
    profile: {
      comma_separated_scopes: true,
      permanent_errors: ["bad_refresh_token"],
      revocation: "github",
      // GitHub's documentation, "Scopes for OAuth apps", "Normalized scopes".
      implied_scopes: {
        user: ["read:user", "user:email", "user:follow"],
        repo: ["repo:status", "repo_deployment", "public_repo", "repo:invite", "security_events"],
        "admin:repo_hook": ["write:repo_hook", "read:repo_hook"],
        "write:repo_hook": ["read:repo_hook"],
        "admin:org": ["write:org", "read:org"],
        "write:org": ["read:org"],
        "admin:public_key": ["write:public_key", "read:public_key"],
        "write:public_key": ["read:public_key"],
        "admin:gpg_key": ["write:gpg_key", "read:gpg_key"],
        "write:gpg_key": ["read:gpg_key"],
        "write:packages": ["read:packages"],
        project: ["read:project"],
      },
    },
  },
  {
    type: "slack",
    hosts: /^slack(-gov)?\.com$/,
    profile: {
      scope_parameter: "user_scope",
      scope_separator: ",",
      comma_separated_scopes: true,
      user_token_field: "authed_user",
      permanent_errors: ["invalid_refresh_token", "token_revoked", "token_expired"],
      revocation: "slack",
    },
  },
  {
    type: "microsoft",
    hosts: /^login\.(microsoftonline\.(com|us)|partner\.microsoftonline\.cn)$/,
    profile: { required_scopes: ["offline_access"], scope_in_token_requests: true },
  },
  {
    type: "salesforce",
    hosts: /(^|\.)salesforce\.com$/,
    // 15 minutes is the shortest session timeout that a Salesforce administrator can configure.
    profile: { metadata_fields: ["instance_url"], assumed_lifetime_s: 15 * 60 },
  },
];

export function profileOf({
  provider_type,
  token_url,
}: Pick<ProviderRow, "provider_type" | "token_url">): ProviderProfile {
  const host = new URL(token_url).hostname;
  const known = PROFILES.find(({ type, hosts }) => (provider_type ? type === provider_type : hosts.test(host)));
  return { ...STANDARD, ...known?.profile };
}

/** OpenID Connect scopes. Providers omit them from the granted scopes or return them in another spelling. */
const UNLISTED_SCOPES = new Set(["openid", "profile", "email", "offline_access"]);

/**
 * Returns the scopes in the response plus the requested OpenID Connect scopes and the requested scopes that a granted one contains; all
 * requested scopes if the response has none (RFC 6749, section 5.1).
 *
 * @param text `scope` of the response
 */
export function grantedScopes(
  text: string | undefined,
  requested: readonly string[],
  profile: ProviderProfile,
): string[] {
  const granted = (text ?? "").split(profile.comma_separated_scopes ? /[\s,]+/ : /\s+/).filter(Boolean);
  if (granted.length === 0) return [...requested];
  const implied = new Set(granted.flatMap((scope) => profile.implied_scopes[scope] ?? []));
  const isUnlisted = (scope: string) => UNLISTED_SCOPES.has(scope) || implied.has(scope);
  return [...new Set([...granted, ...requested.filter(isUnlisted)])];
}
