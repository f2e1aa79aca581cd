import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, errors, type JWTVerifyGetKey, jwtVerify } from "jose";
import { SCOPES, type Scope } from "../platform/contract/caller.ts";
import { ApiError, ConfigError } from "../platform/errors.ts";
import { isLoopback } from "../platform/lib/loopback.ts";

export interface OidcSettings {
  /** As it stands in `iss` and in the issuer's own document, to the letter. */
  issuer: string;
  /** One of a token's audiences. */
  audience: string;
  /** Permits http to loopback addresses, for development and tests. */
  allow_loopback: boolean;
  /** What values of claims permit besides the defaults, by the name of the claim and the value. */
  scopes: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
}

/** Whom a token is about, and what its claims permit besides the defaults. */
export interface TokenUser {
  user_id: string;
  scopes: readonly Scope[];
  /** When what was opened with the token ends, in milliseconds since the epoch. */
  expires_at: number;
}

/** Asymmetric alone: with HS256 whoever knows the public key could sign. */
const ALGORITHMS = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];

/** How far the clocks of the issuer and of this machine may be apart. */
const CLOCK_TOLERANCE_S = 5;

/** The issuer has this long to answer. */
const TIMEOUT_MS = 5_000;

/** Checks the JWTs of one OpenID provider. Its document and its keys are fetched when they are first needed, and kept. */
export class OidcIssuer {
  readonly #settings: OidcSettings;
  #keys: Promise<JWTVerifyGetKey> | undefined;

  /** @throws ConfigError for a scope that there is not */
  constructor(settings: OidcSettings) {
    this.#settings = settings;
    const named = Object.values(settings.scopes).flatMap((byValue) => Object.values(byValue).flat());
    const unknown = named.find((name) => !SCOPES.includes(name as Scope));
    if (unknown !== undefined)
      throw new ConfigError(`THREADMILL_OIDC_SCOPES names the scope "${unknown}", but there are ${SCOPES.join(", ")}.`);
  }

  /**
   * The user of a token that this issuer has made for this service, and that has not expired; undefined for any other text.
   *
   * @throws ApiError unavailable when the issuer does not answer
   */
  async userOf(token: string): Promise<TokenUser | undefined> {
    const { issuer, audience, scopes } = this.#settings;
    // Nobody makes this service ask the issuer with a text that cannot be right.
    if (!isWorthChecking(token, issuer)) return undefined;
    try {
      const { payload } = await jwtVerify(token, (header, jws) => this.#keyFor(header, jws), {
        issuer,
        audience,
        algorithms: ALGORITHMS,
        requiredClaims: ["sub", "exp"],
        clockTolerance: CLOCK_TOLERANCE_S,
      });
      // RFC 7519 makes it a text, which the library does not check.
      if (typeof payload.sub !== "string" || payload.sub === "") return undefined;
      const permitted = Object.entries(scopes).flatMap(([claim, byValue]) =>
        valuesOf(payload[claim]).flatMap((value) => (Object.hasOwn(byValue, value) ? (byValue[value] ?? []) : [])),
      );
      return { user_id: payload.sub, scopes: permitted as Scope[], expires_at: endOf(payload.exp as number) };
    } catch (error) {
      if (error instanceof ApiError) throw error;
      return undefined;
    }
  }

  #keyFor: JWTVerifyGetKey = async (header, jws) => {
    this.#keys ??= this.#discover();
    try {
      return await (await this.#keys)(header, jws);
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys) throw error;
      // Perhaps the keys have moved: the next token asks for the document again.
      this.#keys = undefined;
      throw new ApiError("unavailable", { reason: "The OIDC issuer does not answer right now. Try again." }, error);
    }
  };

  /** OpenID Connect Discovery 1.0, section 4. The operator names the issuer, so it may well lie in a private network. */
  async #discover(): Promise<JWTVerifyGetKey> {
    const { issuer } = this.#settings;
    const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
    const response = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!response.ok) throw new Error(`${url} was answered ${response.status}.`);
    const document = (await response.json()) as { issuer?: unknown; jwks_uri?: unknown };
    if (document.issuer !== issuer) throw new Error(`${url} is the document of "${document.issuer}".`);
    const keys = URL.parse(String(document.jwks_uri));
    if (!keys || !this.#isPermitted(keys)) throw new Error(`${url} names keys at "${document.jwks_uri}".`);
    return createRemoteJWKSet(keys, { timeoutDuration: TIMEOUT_MS });
  }

  #isPermitted(url: URL): boolean {
    if (url.protocol === "https:") return true;
    return url.protocol === "http:" && this.#settings.allow_loopback && isLoopback(url.hostname);
  }
}

/** At `exp`; a token that is taken after it, for the sake of the clocks, has as long as it is taken. */
function endOf(exp: number): number {
  const isOver = exp * 1000 <= Date.now();
  return (isOver ? exp + CLOCK_TOLERANCE_S : exp) * 1000;
}

/** A claim is a list of texts, or one text: a value, or values with spaces between them as in `scope`. */
function valuesOf(claim: unknown): string[] {
  if (typeof claim === "string") return [claim, ...claim.split(" ")];
  return Array.isArray(claim) ? claim.filter((value) => typeof value === "string") : [];
}

function isWorthChecking(token: string, issuer: string): boolean {
  try {
    return ALGORITHMS.includes(decodeProtectedHeader(token).alg ?? "") && decodeJwt(token).iss === issuer;
  } catch {
    return false;
  }
}
