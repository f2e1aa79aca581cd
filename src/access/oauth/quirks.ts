import type { ProviderRow } from "../storage/schema.ts";

/** Where a provider differs from RFC 6749. */
export interface Quirks {
  /** The parameter that asks for scopes on behalf of the user; another one may ask for those of an app. */
  scope_parameter: "scope" | "user_scope";
  /** Between the scopes of a request. */
  scope_separator: " " | ",";
  /** Whether commas also separate the scopes of an answer. */
  comma_scopes: boolean;
  /** Asked for always: without them there is no refresh token. */
  extra_scopes: readonly string[];
  /** Whether scopes are sent again with the code, and with a refresh. */
  scope_on_exchange: boolean;
  /** The field of the answer that holds the user's token, where the outermost one is the app's. */
  nested_in: string | undefined;
  /** Fields of the answer that a token's user needs. */
  metadata_fields: readonly string[];
  /** How long a token without `expires_in` is taken for valid, in seconds, when it can be refreshed. */
  assumed_lifetime_s: number | undefined;
  /** Besides `invalid_grant`: errors after which a refresh token is worth nothing any more. */
  final_errors: readonly string[];
  /** How a token is taken back where the provider names no address of RFC 7009. */
  revocation: "none" | "slack" | "github";
}

const STANDARD: Quirks = {
  scope_parameter: "scope",
  scope_separator: " ",
  comma_scopes: false,
  extra_scopes: [],
  scope_on_exchange: false,
  nested_in: undefined,
  metadata_fields: [],
  assumed_lifetime_s: undefined,
  final_errors: [],
  revocation: "none",
};

/**
 * A row for each provider that is known to differ: by `provider_type` where the API has a word for it, else by the host of its
 * token endpoint. That errors come with status 200 (GitHub, Slack) is understood of everybody (token-response.ts).
 */
const KNOWN: readonly { type?: string; hosts: RegExp; quirks: Partial<Quirks> }[] = [
  {
    hosts: /^github\.com$/,
    quirks: { comma_scopes: true, final_errors: ["bad_refresh_token"], revocation: "github" },
  },
  {
    type: "slack",
    hosts: /^slack(-gov)?\.com$/,
    quirks: {
      scope_parameter: "user_scope",
      scope_separator: ",",
      comma_scopes: true,
      nested_in: "authed_user",
      final_errors: ["invalid_refresh_token", "token_revoked", "token_expired"],
      revocation: "slack",
    },
  },
  {
    type: "microsoft",
    hosts: /^login\.(microsoftonline\.(com|us)|partner\.microsoftonline\.cn)$/,
    quirks: { extra_scopes: ["offline_access"], scope_on_exchange: true },
  },
  {
    type: "salesforce",
    hosts: /(^|\.)salesforce\.com$/,
    // The shortest session that Salesforce lets an administrator choose is 15 minutes.
    quirks: { metadata_fields: ["instance_url"], assumed_lifetime_s: 15 * 60 },
  },
];

export function quirksOf({ provider_type, token_url }: Pick<ProviderRow, "provider_type" | "token_url">): Quirks {
  const host = new URL(token_url).hostname;
  const known = KNOWN.find(({ type, hosts }) => (provider_type ? type === provider_type : hosts.test(host)));
  return { ...STANDARD, ...known?.quirks };
}

/** Scopes of a sign-in. Providers leave them out of the scopes they say they granted, or write them otherwise. */
const NEVER_LISTED = new Set(["openid", "profile", "email", "offline_access"]);

/**
 * What was granted: what the answer says, or when it says nothing what was asked for (RFC 6749, section 5.1).
 *
 * @param text the answer's `scope`
 */
export function grantedScopes(text: string | undefined, asked: readonly string[], quirks: Quirks): string[] {
  const granted = (text ?? "").split(quirks.comma_scopes ? /[\s,]+/ : /\s+/).filter(Boolean);
  if (granted.length === 0) return [...asked];
  return [...new Set([...granted, ...asked.filter((scope) => NEVER_LISTED.has(scope))])];
}
