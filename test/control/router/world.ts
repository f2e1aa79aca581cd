import { once } from "node:events";
import { type IncomingMessage, type RequestOptions, request, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { Access } from "../../../src/access/access.ts";
import type { NewApiKey } from "../../../src/access/contract/admin.ts";
import { createApiKey } from "../../../src/access/keys/api-keys.ts";
import type { OidcIssuer } from "../../../src/access/oidc-issuer.ts";
import { DeploymentFront, type FrontOptions } from "../../../src/app/deployment-front.ts";
import { OriginPolicy } from "../../../src/app/origins.ts";
import { createHttpServer } from "../../../src/app/server.ts";
import { readCors } from "../../../src/config/project.ts";
import { list } from "../../../src/config/settings/setting.ts";
import { apiKeyAad } from "../../../src/control-plane/rollout/instance-spec.ts";
import { DeploymentRouter } from "../../../src/control-plane/router/deployment-router.ts";
import type { Upstream } from "../../../src/control-plane/router/router.ts";
import { insertDeployment } from "../../../src/control-plane/storage/deployments.ts";
import { insertInstances, readyIfStarting, recordStarted } from "../../../src/control-plane/storage/instances.ts";
import { insertRevision, setActiveRevision, transitionIfStatus } from "../../../src/control-plane/storage/revisions.ts";
import { DEFAULT_TENANT, type Scope } from "../../../src/platform/contract/caller.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import { type Clock, realWait, systemClock } from "../../../src/platform/lib/clock.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { createLog } from "../../../src/platform/lib/log.ts";
import type { DatabaseName } from "../../support/databases.ts";
import { openOn, openTestStorage, type TestStorage } from "../../support/storage.ts";
import { testSeal } from "../../support/vault.ts";

const log = createLog(process.env.TEST_LOG_LEVEL ?? "silent");

/** The key of the environment: the user `admin`, in the default workspace. */
export const ROOT = "root-0123456789abcdef0123456789abcdef";
export const ADMIN = { "x-api-key": ROOT };

/** What the service itself answers, in these tests, to what is for no deployment. */
export const ITSELF = "the service itself";

export interface WorldOptions extends Partial<Pick<FrontOptions, "prefix" | "deployments_domain" | "is_loopback">> {
  api_keys?: string[];
  /** As in CORS_ALLOW_ORIGINS. */
  cors_origins?: string;
  router_wait_ms?: number;
  clock?: Clock;
  issuer?: OidcIssuer;
}

/** One process: a router on a database that others may share, and the server in front of it. */
export class Process {
  readonly router: DeploymentRouter;
  readonly server: Server;
  readonly database: Database;
  readonly #access: Access;

  constructor(
    database: Database,
    {
      prefix = "",
      deployments_domain,
      is_loopback = true,
      api_keys = [ROOT],
      cors_origins,
      router_wait_ms = 5_000,
      clock = systemClock,
      issuer,
    }: WorldOptions = {},
  ) {
    this.database = database;
    const settings = { router_wait_ms };
    this.router = new DeploymentRouter({
      database,
      seal: testSeal,
      clock,
      wait: realWait,
      log,
      settings,
    });
    const access = new Access({ database, log, api_keys, issuer, may_be_open: is_loopback });
    this.#access = access;
    const cors = readCors(undefined, "", list(cors_origins ?? "", ""), false);
    const allowed_hosts = is_loopback ? [] : undefined;
    const front = new DeploymentFront({
      router: this.router,
      access,
      origins: new OriginPolicy({ access, cors, public_url: undefined, allowed_hosts }),
      prefix,
      deployments_domain,
      is_loopback,
      allowed_hosts,
      public_url: undefined,
      log,
    });
    this.server = createHttpServer({ fetch: () => new Response(ITSELF), front });
  }

  async listen(): Promise<void> {
    this.router.start();
    this.#access.start();
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** A request over Node's own client, with any headers; its answer is still to be read. */
  async open(path: string, options: RequestOptions & { body?: string } = {}): Promise<IncomingMessage> {
    const { body, headers, ...others } = options;
    // Node's client says of a body no length with GET and DELETE, so that it would be taken for another request.
    const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
    const all = { ...length, ...(headers as Record<string, string>) };
    const sent = request({ host: "127.0.0.1", port: this.port, path, agent: false, headers: all, ...others });
    sent.end(body);
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    // One that comes later is the answer's matter.
    sent.on("error", () => undefined);
    return answer;
  }

  async send(path: string, options: RequestOptions & { body?: string } = {}): Promise<Answer> {
    return readAll(await this.open(path, options));
  }

  /** Text over a bare connection; what comes back until it is closed, or is enough. */
  async raw(text: string, isEnough: (answer: string) => boolean = () => false): Promise<string> {
    const socket = connect(this.port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(text, "latin1");
    let answer = "";
    for await (const chunk of socket.setEncoding("latin1")) {
      answer += chunk;
      if (isEnough(answer)) break;
    }
    return answer;
  }

  async stop(): Promise<void> {
    const closed = once(this.server, "close");
    this.server.close();
    await Promise.all([this.router.stop(), this.#access.stop()]);
    this.server.closeAllConnections();
    await closed;
  }
}

export interface Answer {
  status: number;
  headers: IncomingMessage["headers"];
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  body: any;
}

export async function readAll(answer: IncomingMessage): Promise<Answer> {
  let text = "";
  for await (const chunk of answer.setEncoding("utf8")) text += chunk;
  const isJson = answer.headers["content-type"] === "application/json";
  return { status: answer.statusCode ?? 0, headers: answer.headers, text, body: isJson ? JSON.parse(text) : undefined };
}

export interface DeploymentIds {
  deployment_id: string;
  slug: string;
  tenant_id: string;
}

/** A database with deployments, and a process that routes to them; more processes may share the database. */
export class World {
  readonly storage: TestStorage;
  readonly process: Process;
  readonly #others: Process[] = [];
  #made = 0;

  private constructor(storage: TestStorage, process: Process) {
    this.storage = storage;
    this.process = process;
  }

  static async open(database: DatabaseName = "sqlite", options: WorldOptions = {}): Promise<World> {
    const storage = await openTestStorage(database);
    const process = new Process(storage.database, options);
    await process.listen();
    return new World(storage, process);
  }

  async close(): Promise<void> {
    for (const process of this.#others) {
      await process.stop();
      await process.database.close();
    }
    await this.process.stop();
    await this.storage.close();
  }

  /** Another process on the same database. */
  async another(options?: WorldOptions): Promise<Process> {
    const process = new Process(openOn(this.storage.at), options);
    this.#others.push(process);
    await process.listen();
    return process;
  }

  get router(): DeploymentRouter {
    return this.process.router;
  }

  /** The row of a deployment. */
  async deployment(wishes: { slug?: string; tenant_id?: string } = {}): Promise<DeploymentIds> {
    const { slug = `agent-${++this.#made}`, tenant_id = DEFAULT_TENANT } = wishes;
    const deployment_id = newId();
    const row = { deployment_id, tenant_id, slug, name: slug, source: "internal_source", source_config: "{}" };
    const more = { secrets: null, secret_references: "[]", latest_revision_id: null, next_seq: 1, created_by: "ada" };
    const made = await this.storage.database.write((tx) => insertDeployment(tx, { ...row, ...more }));
    if (!made) throw new Error(`The slug ${slug} is taken.`);
    return { deployment_id, slug, tenant_id };
  }

  /** ... whose requests go to these instances, as a reconciler says. */
  async deployed(...upstreams: Upstream[]): Promise<DeploymentIds & { path: string }> {
    const ids = await this.deployment();
    this.router.activate(ids.deployment_id, upstreams);
    return { ...ids, path: `/deployments/${ids.slug}` };
  }

  /** The rows of a revision that serves with these instances, and the hint that says so. */
  async serve({ deployment_id, tenant_id }: DeploymentIds, upstreams: readonly Upstream[], seq = 1): Promise<void> {
    const revision_id = newId();
    const { database } = this.storage;
    await database.write(async (tx) => {
      await insertRevision(tx, {
        revision_id,
        deployment_id,
        tenant_id,
        seq,
        source: "internal_source",
        source_config: "{}",
        source_revision_config: "{}",
        secrets: null,
        secret_references: "[]",
        status: "CREATING",
        created_by: "ada",
      });
      await transitionIfStatus(tx, {
        revision_id,
        from: "CREATING",
        to: "DEPLOYED",
        status_message: null,
        is_terminal: true,
      });
      const rows = upstreams.map(({ instance_id, api_key }, replica) => ({
        instance_id,
        deployment_id,
        revision_id,
        tenant_id,
        rollout: seq,
        replica,
        driver: "test",
        api_key: testSeal.seal(api_key, apiKeyAad({ tenant_id, instance_id })),
      }));
      if (rows.length > 0) await insertInstances(tx, rows);
      for (const { instance_id, address } of upstreams) {
        await recordStarted(tx, { instance_id, handle: instance_id, address });
        await readyIfStarting(tx, { instance_id, handle: instance_id }, false);
      }
      await setActiveRevision(tx, { deployment_id, revision_id });
    });
    database.hints.emit({ kind: "deployment", deployment_id });
  }

  /** Headers with a new key. */
  async key(wishes: { tenant_id?: string; user_id?: string; scopes?: readonly Scope[] } = {}): Promise<{
    "x-api-key": string;
  }> {
    return { "x-api-key": (await this.newKey(wishes)).key };
  }

  newKey({
    tenant_id = DEFAULT_TENANT,
    user_id = "ada",
    scopes = ["agents"] as readonly Scope[],
  } = {}): Promise<NewApiKey> {
    const wanted = { tenant_id, user_id, name: "test", scopes };
    return this.storage.database.write((tx) => createApiKey(tx, wanted));
  }
}
