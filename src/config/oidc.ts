import { ConfigError } from "../platform/errors.ts";
import { isObject } from "../platform/lib/json/json.ts";
import { isLoopback } from "../platform/lib/loopback.ts";
import type { Env } from "./values.ts";

/** The OpenID provider whose JWTs are accepted. */
export interface Oidc {
  issuer: string;
  audience: string;
  allow_loopback: boolean;
  /** Names of scopes by a claim and one of its values. */
  scopes: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
}

/** Permits OAuth and OpenID providers at loopback addresses, also with http. */
export const mayUseLoopback = (env: Env): boolean => env.THREADMILL_ALLOW_LOOPBACK_OAUTH === "1";

/**
 * The OpenID provider of `THREADMILL_OIDC_ISSUER`, when one is configured.
 *
 * @throws ConfigError
 */
export function readOidc(env: Env): Oidc | undefined {
  const issuer = env.THREADMILL_OIDC_ISSUER;
  const audience = env.THREADMILL_OIDC_AUDIENCE;
  if (!issuer && !audience) return undefined;
  if (!issuer || !audience) {
    throw new ConfigError("THREADMILL_OIDC_ISSUER and THREADMILL_OIDC_AUDIENCE belong together: set both, or none.");
  }
  const allow_loopback = mayUseLoopback(env);
  const url = URL.parse(issuer);
  const isHttp = url?.protocol === "http:" && allow_loopback && isLoopback(url.hostname);
  if (!url || (url.protocol !== "https:" && !isHttp) || url.search || url.hash) {
    throw new ConfigError(
      `THREADMILL_OIDC_ISSUER must be the address of an OpenID provider, as it stands in the "iss" of its tokens and with https, but is "${issuer}".`,
    );
  }
  return { issuer, audience, allow_loopback, scopes: readOidcScopes(env.THREADMILL_OIDC_SCOPES) };
}

function readOidcScopes(text: string | undefined): Oidc["scopes"] {
  if (!text) return {};
  const isList = (value: unknown) => Array.isArray(value) && value.every((name) => typeof name === "string");
  const isMap = (value: unknown, fits: (value: unknown) => boolean) =>
    isObject(value) && Object.values(value).every(fits);
  try {
    const scopes: unknown = JSON.parse(text);
    if (isMap(scopes, (values) => isMap(values, isList))) return scopes as Oidc["scopes"];
  } catch {}
  throw new ConfigError(
    `THREADMILL_OIDC_SCOPES must be JSON that maps claims, their values and scopes, such as {"groups": {"platform": ["deployments"]}}, but is "${text}".`,
  );
}
