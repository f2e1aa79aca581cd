import { expect } from "vitest";
import type { RevisionRow, RevisionStatus } from "../../../src/control-plane/storage/schema.ts";
import { DEFAULT_TENANT, type Scope } from "../../../src/platform/contract/caller.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import type { DatabaseName } from "../../support/databases.ts";
import { type Answer, startService, type TestService } from "../../support/service.ts";
import { openOn } from "../../support/storage.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
export type Wire = any;

/** Somebody who calls, in one of their workspaces. */
export interface User {
  tenant_id: string;
  key: string;
  send(method: string, path: string, body?: unknown): Promise<Answer>;
  /** A request that must be answered with this status; answers its body. */
  call(method: string, path: string, body?: unknown, status?: number): Promise<Wire>;
}

/** A service with keys of its own for whoever calls. Nothing reconciles: what becomes of revisions is said by the test. */
export class ControlApi {
  readonly service: TestService;
  /** The database of the service, over a connection beside it. */
  readonly storage: Database;
  readonly #admin: string;

  private constructor(service: TestService, admin: string) {
    this.service = service;
    this.storage = openOn(service.database);
    this.#admin = admin;
  }

  static async start(database: DatabaseName, env: Record<string, string> = {}): Promise<ControlApi> {
    const service = await startService({
      database,
      config: "test/graphs/scenarios/langgraph.json",
      env: { THREADMILL_RECONCILES: "0", ...env },
    });
    const body = { name: "admin", user_id: "admin", scopes: ["admin"] };
    return new ControlApi(service, (await service.request("POST", "/admin/keys", body)).body.key);
  }

  async stop(): Promise<void> {
    await this.storage.close();
    await this.service.stop();
  }

  async newWorkspace(name: string): Promise<string> {
    return (await this.#asAdmin("/admin/workspaces", { name })).tenant_id;
  }

  async user(tenant_id: string = DEFAULT_TENANT, scopes: Scope[] = ["deployments"]): Promise<User> {
    const { key } = await this.#asAdmin("/admin/keys", { name: "test", user_id: "ada", tenant_id, scopes });
    const send = (method: string, path: string, body?: unknown) =>
      this.service.request(method, path, body, { "X-Api-Key": key });
    return {
      tenant_id,
      key,
      send,
      async call(method, path, body, status = 200) {
        const answer = await send(method, path, body);
        expect([answer.status, answer.text]).toEqual([status, answer.text]);
        return answer.body;
      },
    };
  }

  /** What a reconciler would have made of a revision. */
  async become(revision_id: string, status: RevisionStatus, more: Partial<RevisionRow> = {}): Promise<void> {
    await this.storage.write((tx) =>
      tx.run(
        tx.k
          .updateTable("revisions")
          .set({ status, ...more })
          .where("revision_id", "=", revision_id),
      ),
    );
  }

  row = (revision_id: string): Promise<RevisionRow> =>
    this.storage.read.first(
      this.storage.read.k.selectFrom("revisions").selectAll().where("revision_id", "=", revision_id),
    ) as Promise<RevisionRow>;

  async #asAdmin(path: string, body: unknown): Promise<Wire> {
    const answer = await this.service.request("POST", path, body, { "X-Api-Key": this.#admin });
    expect(answer.status).toBe(201);
    return answer.body;
  }
}

let made = 0;

/** A body that makes a deployment with a revision. */
export const ofImage = (more: object = {}) => ({
  name: `image-${++made}`,
  source: "external_docker",
  source_config: {},
  source_revision_config: { image_uri: "registry.example.com/agent:1" },
  secrets: [],
  ...more,
});

export const ofRepository = (more: object = {}) => ({
  name: `repository-${++made}`,
  source: "github",
  source_config: { repo_url: "https://git.example.com/team/agent.git" },
  source_revision_config: { repo_ref: "main", langgraph_config_path: "langgraph.json" },
  secrets: [],
  ...more,
});

/** What the command-line clients create: nothing to run yet. */
export const empty = (more: object = {}) => ({
  name: `empty-${++made}`,
  source: "internal_source",
  source_config: { deployment_type: "dev" },
  source_revision_config: {},
  secrets: [],
  ...more,
});

export const DEPLOYMENT_FIELDS = [
  "id",
  "tenant_id",
  "name",
  "source",
  "source_config",
  "source_revision_config",
  "secrets",
  "secret_references",
  "status",
  "latest_revision_id",
  "active_revision_id",
  "image_version",
  "created_at",
  "updated_at",
];

export const REVISION_FIELDS = [
  "id",
  "status",
  "status_message",
  "source",
  "source_revision_config",
  "can_redeploy",
  "created_at",
  "updated_at",
];

export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
export const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/;
