import { expect } from "vitest";
import { DEFAULT_TENANT, type Scope } from "../../../src/platform/contract/caller.ts";
import type { DatabaseName } from "../../support/databases.ts";
import { type Answer, startService, type TestService } from "../../support/service.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
export type Wire = any;

/** Somebody who calls, in one of their workspaces. */
export interface User {
  tenant_id: string;
  /** The same user, with a key for everything in the workspace. */
  asAdmin(): Promise<User>;
  send(method: string, path: string, body?: unknown): Promise<Answer>;
  /** A request that must be answered with this status; answers its body. */
  call(method: string, path: string, body?: unknown, status?: number): Promise<Wire>;
}

const USUAL: Scope[] = ["tokens", "providers"];

/** A service with keys of its own for whoever calls. */
export class AuthServiceApi {
  readonly service: TestService;
  readonly #admin: string;

  private constructor(service: TestService, admin: string) {
    this.service = service;
    this.#admin = admin;
  }

  static async start(database: DatabaseName, env: Record<string, string> = {}): Promise<AuthServiceApi> {
    const service = await startService({ database, config: "test/graphs/scenarios/langgraph.json", env });
    const body = { name: "admin", user_id: "admin", scopes: ["admin"] };
    return new AuthServiceApi(service, (await service.request("POST", "/admin/keys", body)).body.key);
  }

  stop = (): Promise<void> => this.service.stop();

  async newWorkspace(name: string): Promise<string> {
    const answer = await this.#asAdmin("/admin/workspaces", { name });
    return answer.tenant_id;
  }

  /** @param at where the API is looked for */
  async user(user_id: string, tenant_id: string = DEFAULT_TENANT, at = "", scopes = USUAL): Promise<User> {
    const key = await this.newKey(user_id, tenant_id, scopes);
    const send = (method: string, path: string, body?: unknown) =>
      this.service.request(method, `${at}/v2/auth${path}`, body, { "X-Api-Key": key });
    return {
      tenant_id,
      send,
      asAdmin: () => this.user(user_id, tenant_id, at, ["admin"]),
      async call(method, path, body, status = 200) {
        const answer = await send(method, path, body);
        expect([answer.status, answer.text]).toEqual([status, answer.text]);
        return answer.body;
      },
    };
  }

  async newKey(user_id: string, tenant_id: string = DEFAULT_TENANT, scopes = USUAL): Promise<string> {
    return (await this.#asAdmin("/admin/keys", { name: user_id, user_id, tenant_id, scopes })).key;
  }

  async #asAdmin(path: string, body: unknown): Promise<Wire> {
    const answer = await this.service.request("POST", path, body, { "X-Api-Key": this.#admin });
    expect(answer.status).toBe(201);
    return answer.body;
  }
}

export const provider = (provider_id: string, more: object = {}) => ({
  provider_id,
  name: `The ${provider_id}`,
  client_id: `client-of-${provider_id}`,
  client_secret: `secret-of-${provider_id}`,
  auth_url: `https://${provider_id}.example.com/authorize`,
  token_url: `https://${provider_id}.example.com/token`,
  ...more,
});

export const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/;
