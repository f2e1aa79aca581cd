import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, errors, type JWTVerifyGetKey, jwtVerify } from "jose";
import { SCOPES, type Scope } from "../platform/contract/caller.ts";
import { ApiError, ConfigError } from "../platform/errors.ts";
import { isLoopback } from "../platform/lib/safe-fetch/addresses.ts";

export interface OidcSettings {
  /** Issuer URL. It must equal `iss` of the JWT and `issuer` of the discovery document exactly. */
  issuer: string;
  audience: string;
  /** Permits http to loopback addresses, for development and tests. */
  allow_loopback: boolean;
  /** Scopes that a claim value grants in addition to the default scopes, by claim name and value. */
  scopes: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
}

export interface TokenUser {
  user_id: string;
  scopes: readonly Scope[];
  /** Time at which responses that were opened with the JWT are ended, in milliseconds since the epoch. */
  expires_at: number;
}

/** Only asymmetric algorithms: with HS256, the public key would be enough to sign a JWT. */
const ALGORITHMS = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];

/** Maximum clock difference between the issuer and this machine. */
const CLOCK_TOLERANCE_S = 5;

const TIMEOUT_MS = 5_000;

/** Verifies the JWTs of one OpenID provider. The discovery document and the keys are fetched on first use and cached. */
export class OidcIssuer {
  readonly #settings: OidcSettings;
  #keys: Promise<JWTVerifyGetKey> | undefined;
  #renewal: Promise<void> | undefined;

  /** @throws ConfigError for an unknown scope */
  constructor(settings: OidcSettings) {
    this.#settings = settings;
    const configured = Object.values(settings.scopes).flatMap((byValue) => Object.values(byValue).flat());
    const unknown = configured.find((name) => !SCOPES.includes(name as Scope));
    if (unknown !== undefined)
      throw new ConfigError(
        `THREADMILL_OIDC_SCOPES contains the unknown scope "${unknown}". Valid scopes: ${SCOPES.join(", ")}.`,
      );
  }

  /**
   * @returns undefined when the text is not a valid, unexpired JWT of this issuer for this audience
   * @throws ApiError unavailable when the issuer's discovery document or keys cannot be loaded
   */
  async userOf(token: string): Promise<TokenUser | undefined> {
    const { issuer, audience, scopes } = this.#settings;
    // An obviously invalid JWT must not cause a request to the issuer.
    if (!canBeValid(token, issuer)) return undefined;
    try {
      const { payload } = await jwtVerify(token, (header, jws) => this.#keyFor(header, jws), {
        issuer,
        audience,
        algorithms: ALGORITHMS,
        requiredClaims: ["sub", "exp"],
        clockTolerance: CLOCK_TOLERANCE_S,
      });
      // RFC 7519 requires a string. The library does not check the type.
      if (typeof payload.sub !== "string" || payload.sub === "") return undefined;
      const granted = Object.entries(scopes).flatMap(([claim, byValue]) =>
        valuesOf(payload[claim]).flatMap((value) => (Object.hasOwn(byValue, value) ? (byValue[value] ?? []) : [])),
      );
      return { user_id: payload.sub, scopes: granted as Scope[], expires_at: accessEndOf(payload.exp as number) };
    } catch (error) {
      if (error instanceof ApiError) throw error;
      return undefined;
    }
  }

  #keyFor: JWTVerifyGetKey = async (header, jws) => {
    this.#keys ??= this.#discover();
    const keys = this.#keys;
    try {
      return await (await keys)(header, jws);
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys) throw error;
      await this.#renew(keys);
      throw new ApiError(
        "unavailable",
        { reason: "The discovery document or the keys of the OIDC issuer cannot be loaded. Try again." },
        error,
      );
    }
  };

  /**
   * Repeats the discovery, because the key URL may have changed. Until it succeeds, keys that were loaded are used: anyone can cause their
   * reload with a JWT that names an unknown key.
   */
  async #renew(failed: Promise<JWTVerifyGetKey>): Promise<void> {
    if (this.#keys !== failed) return;
    const wasLoaded = await failed.then(
      () => true,
      () => false,
    );
    if (!wasLoaded) this.#keys = undefined;
    else {
      this.#renewal ??= this.#rediscover();
      await this.#renewal;
    }
  }

  async #rediscover(): Promise<void> {
    try {
      const found = await this.#discover();
      await found.reload();
      this.#keys = Promise.resolve(found);
    } catch {
      // The next JWT that needs it tries again.
    } finally {
      this.#renewal = undefined;
    }
  }

  /** Loads the metadata (OpenID Connect Discovery 1.0, section 4). Private networks are allowed: the operator configures the issuer. */
  async #discover(): Promise<ReturnType<typeof createRemoteJWKSet>> {
    const { issuer } = this.#settings;
    const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
    const response = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!response.ok) throw new Error(`${url} returned status ${response.status}.`);
    const document = (await response.json()) as { issuer?: unknown; jwks_uri?: unknown };
    if (document.issuer !== issuer)
      throw new Error(`${url} contains the issuer "${document.issuer}", but THREADMILL_OIDC_ISSUER is "${issuer}".`);
    const keys = URL.parse(String(document.jwks_uri));
    if (!keys || !this.#isPermitted(keys))
      throw new Error(`${url} must contain an https URL as jwks_uri, but contains "${document.jwks_uri}".`);
    return createRemoteJWKSet(keys, { timeoutDuration: TIMEOUT_MS });
  }

  #isPermitted(url: URL): boolean {
    if (url.protocol === "https:") return true;
    return url.protocol === "http:" && this.#settings.allow_loopback && isLoopback(url.hostname);
  }
}

/** Returns `exp` in milliseconds or, if `exp` has already passed, the end of the clock tolerance. */
function accessEndOf(exp: number): number {
  const isExpired = exp * 1000 <= Date.now();
  return (isExpired ? exp + CLOCK_TOLERANCE_S : exp) * 1000;
}

/** Returns the values of a claim: the strings of a list, or a string and its space-separated parts, as in `scope`. */
function valuesOf(claim: unknown): string[] {
  if (typeof claim === "string") return [claim, ...claim.split(" ")];
  return Array.isArray(claim) ? claim.filter((value) => typeof value === "string") : [];
}

function canBeValid(token: string, issuer: string): boolean {
  try {
    return ALGORITHMS.includes(decodeProtectedHeader(token).alg ?? "") && decodeJwt(token).iss === issuer;
  } catch {
    return false;
  }
}
