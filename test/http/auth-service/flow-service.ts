import { startThreadmill, type Threadmill } from "../../../src/main.ts";
import { DEFAULT_TENANT, type Scope } from "../../../src/platform/contract/caller.ts";
import { createLog } from "../../../src/platform/lib/log.ts";
import type { DatabaseName } from "../../support/databases.ts";
import { authorizeInBrowser, OAuthServer, type TestClient } from "../../support/oauth-server.ts";
import { type Answer, startService, type TestService } from "../../support/service.ts";

/** Where the service is called in these tests, without a socket. */
export const ORIGIN = "http://localhost";

const CLIENT: TestClient = {
  client_id: "the-client",
  client_secret: "the-secret-of-the-client",
  token_endpoint_auth_method: "client_secret_basic",
};

export interface FlowServiceOptions {
  env?: Record<string, string>;
  redirect_uris?: string[];
  /** The graphs. */
  config?: string;
  inline?: boolean;
}

/** Somebody with a key. */
export interface User {
  send(method: string, path: string, body?: unknown): Promise<Answer>;
  /** Asks for a token of the provider `acme`. */
  authenticate(body?: object): Promise<Answer["body"]>;
}

/** A service, an authorization server, and a provider `acme` for it in the default workspace. */
export class FlowService {
  readonly service: TestService;
  readonly server: OAuthServer;
  readonly #admin: string;

  private constructor(service: TestService, server: OAuthServer, admin: string) {
    this.service = service;
    this.server = server;
    this.#admin = admin;
  }

  /** @param redirect_paths what the authorization server knows as our callbacks, besides that of `acme` */
  static async start(
    database: DatabaseName,
    { env = {}, redirect_uris = [], ...more }: FlowServiceOptions = {},
  ): Promise<FlowService> {
    const service = await startService({
      database,
      config: "test/graphs/scenarios/langgraph.json",
      ...more,
      env: { THREADMILL_ALLOW_LOOPBACK_OAUTH: "1", ...env },
    });
    const server = await OAuthServer.start([CLIENT], [`${ORIGIN}/v2/auth/callback/acme`, ...redirect_uris]);
    const body = { name: "admin", user_id: "admin", scopes: ["admin"] };
    const { key } = (await service.request("POST", "/admin/keys", body)).body;
    const flows = new FlowService(service, server, key);
    await flows.provider("acme");
    return flows;
  }

  async stop(): Promise<void> {
    await this.service.stop();
    await this.server.stop();
  }

  /** A provider for the authorization server. */
  async provider(provider_id: string, more: object = {}): Promise<Answer["body"]> {
    const { url } = this.server;
    return this.#asAdmin("/v2/auth/providers", {
      provider_id,
      name: provider_id,
      ...CLIENT,
      auth_url: `${url}/auth`,
      token_url: `${url}/token`,
      revocation_url: `${url}/token/revocation`,
      issuer: url,
      uses_pkce: true,
      ...more,
    });
  }

  async workspace(name: string): Promise<string> {
    return (await this.#asAdmin("/admin/workspaces", { name })).tenant_id;
  }

  async user(
    user_id: string,
    scopes: Scope[] = ["tokens"],
    tenant_id = DEFAULT_TENANT,
    at = this.#send,
  ): Promise<User> {
    const { key } = await this.#asAdmin("/admin/keys", { name: user_id, user_id, scopes, tenant_id });
    const send: User["send"] = (method, path, body) => at(method, path, body, { "X-Api-Key": key });
    return {
      send,
      async authenticate(body = {}) {
        const answer = await send("POST", "/v2/auth/authenticate", { provider: "acme", scopes: ["read"], ...body });
        if (answer.status !== 200) throw new Error(`authenticate was answered ${answer.status}: ${answer.text}`);
        return answer.body;
      },
    };
  }

  /** What a browser without a key is answered. */
  browse(path: string): Promise<Answer> {
    return this.service.request("GET", path);
  }

  /** Sends a browser to the provider; answers the path with which it comes back. */
  async goAndReturn(url: string, options?: Parameters<typeof authorizeInBrowser>[1]): Promise<string> {
    const back = await authorizeInBrowser(url, options);
    return `${back.pathname}${back.search}`;
  }

  /** The whole way, until the page at its end. */
  async connect(user: User, body: object = {}): Promise<void> {
    const { url } = await user.authenticate(body);
    const { status, headers } = await this.browse(await this.goAndReturn(url));
    if (status !== 302 || !headers.get("location")?.includes("status=connected")) throw new Error("Not connected.");
  }

  /** Another process on the same database, as far as that goes within one. */
  async startAnother(): Promise<{ threadmill: Threadmill; send: TestService["request"] }> {
    const threadmill = await startThreadmill(this.service.config, createLog("silent"));
    return {
      threadmill,
      async send(method, path, body, headers) {
        const init = { method, headers, body: body === undefined ? undefined : JSON.stringify(body) };
        const response = await threadmill.fetch(new Request(`${ORIGIN}${path}`, init));
        const text = await response.text();
        const { status } = response;
        return { status, headers: response.headers, text, body: text.startsWith("{") ? JSON.parse(text) : undefined };
      },
    };
  }

  readonly #send: TestService["request"] = (...request) => this.service.request(...request);

  async #asAdmin(path: string, body: unknown): Promise<Answer["body"]> {
    const answer = await this.service.request("POST", path, body, { "X-Api-Key": this.#admin });
    if (answer.status > 201) throw new Error(`${path} was answered ${answer.status}: ${answer.text}`);
    return answer.body;
  }
}
