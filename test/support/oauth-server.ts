import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

/** A client that the server knows. */
export interface TestClient {
  client_id: string;
  client_secret?: string;
  token_endpoint_auth_method: "none" | "client_secret_basic" | "client_secret_post";
}

/** What happens to requests for tokens: an answer as it should be, an error of the server, or no answer. */
type Behavior = "normal" | "error" | "silent";

/** Scopes that clients may ask for, besides `openid` and `offline_access`. */
const SCOPES = ["openid", "offline_access", "read", "write"];

/** A real authorization server on a port of its own, with rotating refresh tokens, revocation and registration. */
export class OAuthServer {
  readonly url: string;
  readonly provider: Provider;
  /** Every token it has given out, to look for where none should be. */
  readonly issued: string[] = [];
  /** Every code and verifier that it has taken for a token. */
  readonly used: string[] = [];
  /** Grants of tokens so far, by grant type; `refused` counts the others. */
  readonly granted: Record<string, number> = {};
  readonly refusals: string[] = [];
  /** Paths that were asked for, in order. */
  readonly requests: string[] = [];
  /** How long access tokens live from now on. */
  access_ttl_s = 3600;
  behavior: Behavior = "normal";
  /** Set to hold requests for tokens back until it resolves. */
  gate: Promise<void> | undefined;
  readonly #stop: () => Promise<void>;

  private constructor(url: string, clients: readonly TestClient[], stop: () => Promise<void>) {
    this.url = url;
    this.#stop = stop;
    this.provider = new Provider(url, this.#configuration(clients));
    this.provider.on("grant.success", ({ oidc, body }) => {
      const type = oidc.params.grant_type ?? "";
      this.granted[type] = (this.granted[type] ?? 0) + 1;
      for (const name of ["access_token", "refresh_token"]) if (body[name]) this.issued.push(String(body[name]));
      for (const name of ["code", "code_verifier"]) if (oidc.params[name]) this.used.push(oidc.params[name]);
    });
    this.provider.on("grant.error", (_, error) => this.refusals.push(error.message));
  }

  /** @param redirect_uris of all clients */
  static async start(clients: readonly TestClient[], redirect_uris: readonly string[]): Promise<OAuthServer> {
    const http = createServer().listen(0, "127.0.0.1");
    await once(http, "listening");
    const stop = async () => {
      http.close();
      http.closeAllConnections();
      await once(http, "close");
    };
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
    const known = clients.map((client) => ({ ...client, redirect_uris }));
    const server = new OAuthServer(url, known, stop);
    const answer = server.provider.callback();
    http.on("request", (request, response) => void server.#handle(request, response, answer));
    return server;
  }

  stop(): Promise<void> {
    return this.#stop();
  }

  /** How often tokens were asked for with a refresh token, and given. */
  get refreshes(): number {
    return this.granted.refresh_token ?? 0;
  }

  async knows(access_token: string): Promise<boolean> {
    return (await this.provider.AccessToken.find(access_token)) !== undefined;
  }

  /** What an administrator does there: the user's grant is taken back. */
  async withdraw(refresh_token: string): Promise<void> {
    const token = await this.provider.RefreshToken.find(refresh_token);
    const grant = token && (await this.provider.Grant.find(token.grantId));
    await grant?.destroy();
  }

  async #handle(
    request: IncomingMessage,
    response: ServerResponse,
    answer: ReturnType<Provider["callback"]>,
  ): Promise<void> {
    const { pathname } = new URL(request.url ?? "/", this.url);
    this.requests.push(pathname);
    if (pathname.startsWith("/interaction/")) return this.#interact(request, response);
    if (pathname === "/token") {
      await this.gate;
      if (this.behavior === "silent") return;
      if (this.behavior === "error")
        return void response.writeHead(500, { "content-type": "text/plain" }).end("broken");
    }
    return answer(request, response);
  }

  /** Where a person would sign in and agree; `account` and `decision` in the query say who and what. */
  async #interact(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { provider } = this;
    const query = new URL(request.url ?? "/", this.url).searchParams;
    const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
    if (query.get("decision") === "deny") {
      const error = { error: "access_denied", error_description: "The user said no." };
      return provider.interactionFinished(request, response, error);
    }
    if (prompt.name === "login") {
      return provider.interactionFinished(request, response, {
        login: { accountId: query.get("account") ?? "someone" },
      });
    }
    const accountId = session?.accountId ?? "someone";
    const grant =
      (grantId && (await provider.Grant.find(grantId))) ||
      new provider.Grant({ accountId, clientId: params.client_id ?? "" });
    grant.addOIDCScope(params.scope ?? "");
    if (params.resource) grant.addResourceScope(params.resource, params.scope ?? "");
    return provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } });
  }

  #configuration(clients: readonly object[]): object {
    return {
      clients: clients.map((client) => ({
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        ...client,
      })),
      scopes: SCOPES,
      findAccount: (_: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
      interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
      issueRefreshToken: () => true,
      rotateRefreshToken: true,
      expiresWithSession: () => false,
      pkce: { required: (_: unknown, { clientId }: { clientId: string }) => clientId !== "without-pkce" },
      cookies: { keys: ["a key for the tests"] },
      ttl: {
        AccessToken: () => this.access_ttl_s,
        AuthorizationCode: 60,
        Grant: 86_400,
        IdToken: 3600,
        Interaction: 600,
        RefreshToken: 86_400,
        Session: 86_400,
      },
      features: {
        devInteractions: { enabled: false },
        introspection: { enabled: true },
        revocation: { enabled: true },
        registration: { enabled: true },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: () => ({ scope: SCOPES.join(" "), accessTokenFormat: "opaque" }),
          useGrantedResource: () => true,
        },
      },
    };
  }
}

/**
 * Walks to the server and back as a browser with cookies does, without following where it comes back to.
 *
 * @returns the redirect URI with what the server adds to it
 */
export async function authorizeInBrowser(
  url: string,
  { account = "someone", decision = "allow" }: { account?: string; decision?: "allow" | "deny" } = {},
): Promise<URL> {
  const cookies = new Map<string, string>();
  const { origin } = new URL(url);
  let at = new URL(url);
  for (let hops = 0; hops < 20; hops++) {
    if (at.pathname.startsWith("/interaction/")) at.search = new URLSearchParams({ account, decision }).toString();
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(at, { redirect: "manual", headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === "") cookies.delete(name);
      else cookies.set(name, value);
    }
    const location = response.headers.get("location");
    if (!location) throw new Error(`${at} was answered ${response.status}: ${await response.text()}`);
    at = new URL(location, at);
    if (at.origin !== origin) return at;
  }
  throw new Error(`${url} leads in circles.`);
}
