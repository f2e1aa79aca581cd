import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { Deployment, Revision } from "../../src/control-plane/contract/records.ts";
import { createDatabase, type DatabaseName, type TestDatabase } from "../support/databases.ts";
import { freePort, type ServerProcess, startProcess } from "../support/process.ts";
import { until } from "../support/until.ts";
import { packed } from "./deployed-project.ts";

export const OPERATOR_KEY = "a-key-of-the-operator-0123456789abcdef";
/** Whoever asks in a closed loop is most of the load that it waits for. */
const LOOK_MS = 50;
/** On a machine that does other things, too. */
const TIMEOUT_MS = 180_000;

/** The real program with one deployment, which runs as processes; it may be killed and started again. */
export class DeployedService {
  readonly database: TestDatabase;
  readonly #env: Record<string, string>;
  readonly #command: "dev" | "serve";
  #server: ServerProcess | undefined;
  deployment_id = "";

  private constructor(database: TestDatabase, env: Record<string, string>, command: "dev" | "serve") {
    this.database = database;
    this.#env = env;
    this.#command = command;
  }

  static async start(
    name: DatabaseName,
    env: Record<string, string> = {},
    command: "dev" | "serve" = "serve",
  ): Promise<DeployedService> {
    const service = new DeployedService(await createDatabase(name), env, command);
    await service.start();
    const body = { name: "mine", source: "internal_source", source_config: {}, source_revision_config: {} };
    service.deployment_id = ((await service.call("POST", "/v2/deployments", body)) as Deployment).id;
    return service;
  }

  get server(): ServerProcess {
    if (!this.#server) throw new Error("The service does not run.");
    return this.#server;
  }

  /** @param failpoint where it is to die, as failpoints.ts has it, at which passage */
  async start(failpoint?: string, passage = "1"): Promise<void> {
    this.#server = await startProcess({
      command: this.#command,
      config: "test/graphs/shared/langgraph.json",
      data: this.database.data_dir,
      databaseUrl: this.database.url,
      port: await freePort(),
      env: {
        API_KEYS: OPERATOR_KEY,
        ...this.#env,
        ...(failpoint !== undefined && { FAILPOINT: failpoint, FAIL_AFTER: passage }),
      },
      ...(failpoint !== undefined && { preload: "test/crash/failpoints.ts" }),
    });
  }

  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    this.#server?.child.kill(signal);
    await this.#server?.ended;
    this.#server = undefined;
  }

  /** Takes everything away, whatever a test has left. */
  async close(): Promise<void> {
    await this.stop("SIGKILL");
    await this.start();
    await this.remove();
    await this.stop();
    await this.database.drop();
  }

  send(method: string, path: string, body?: unknown): Promise<Response> {
    return fetch(`${this.server.url}${path}`, {
      method,
      headers: { "x-api-key": OPERATOR_KEY, ...(body !== undefined && { "content-type": "application/json" }) },
      body: body === undefined ? null : JSON.stringify(body),
    });
  }

  /** A request that has to be answered well; answers its body. */
  async call(method: string, path: string, body?: unknown): Promise<unknown> {
    const answer = await this.send(method, path, body);
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path} was answered ${answer.status}: ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }

  /** Uploads a source, and makes a revision of it. */
  async deploy(files: Readonly<Record<string, string>>): Promise<string> {
    const { file } = await packed(files);
    const permission = await this.call("POST", `/v2/deployments/${this.deployment_id}/upload-url`);
    const { upload_url, object_path } = permission as { upload_url: string; object_path: string };
    const put = await fetch(upload_url, {
      method: "PUT",
      headers: { "content-type": "application/gzip" },
      body: readFileSync(file),
    });
    if (!put.ok) throw new Error(await put.text());
    const deployment = (await this.call("PATCH", `/v2/deployments/${this.deployment_id}`, {
      source_revision_config: { source_tarball_path: object_path, langgraph_config_path: "langgraph.json" },
    })) as Deployment;
    return deployment.latest_revision_id as string;
  }

  redeploy = (revision_id: string) =>
    this.call("POST", `/v2/deployments/${this.deployment_id}/revisions/${revision_id}/redeploy`);

  revision = (revision_id: string): Promise<Revision> =>
    this.call("GET", `/v2/deployments/${this.deployment_id}/revisions/${revision_id}`) as Promise<Revision>;

  deployment = (): Promise<Deployment> =>
    this.call("GET", `/v2/deployments/${this.deployment_id}`) as Promise<Deployment>;

  /** Waits until a revision has come to its end, which must be this one; answers what is said of it. */
  async becomes(revision_id: string, status: string): Promise<string | null> {
    let found: Revision | undefined;
    await until(
      `the revision is ${status}`,
      () =>
        this.#look(async () => {
          found = await this.revision(revision_id);
          return !/CREATING|QUEUED|AWAITING|BUILDING|DEPLOYING/.test(found.status);
        }),
      TIMEOUT_MS,
    );
    if (found?.status !== status) throw new Error(`It is ${found?.status}: ${found?.status_message}`);
    return found.status_message;
  }

  /** Deletes the deployment, and waits until nothing of it is left. */
  async remove(): Promise<void> {
    await this.send("DELETE", `/v2/deployments/${this.deployment_id}`);
    await this.deleted();
  }

  deleted = (): Promise<boolean> =>
    until(
      "the deployment is deleted",
      () => this.#look(async () => (await this.send("GET", `/v2/deployments/${this.deployment_id}`)).status === 404),
      TIMEOUT_MS,
    );

  /** As until(), for what is asked of the service, which may be away. */
  holds = (what: string, ask: () => Promise<boolean>): Promise<boolean> =>
    until(what, () => this.#look(ask), TIMEOUT_MS);

  async #look(ask: () => Promise<boolean>): Promise<boolean> {
    if (await ask()) return true;
    await pause(LOOK_MS);
    return false;
  }
}
