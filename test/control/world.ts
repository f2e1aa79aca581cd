import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { sql } from "kysely";
import { generateEncryptionKey } from "../../src/access/encryption/encryption-key.ts";
import { KeyRing } from "../../src/access/encryption/key-ring.ts";
import { MIGRATIONS } from "../../src/app/compose/migrations.ts";
import type { DeploymentCreate } from "../../src/control-plane/contract/deployments.ts";
import { Deployments } from "../../src/control-plane/deployments/deployments.ts";
import { Revisions } from "../../src/control-plane/deployments/revisions.ts";
import type { DeployDriver } from "../../src/control-plane/drivers/driver.ts";
import { Reconciler } from "../../src/control-plane/reconcile/reconciler.ts";
import {
  type ReconcilerContext,
  type ReconcilerSettings,
  reconcilerSettings,
} from "../../src/control-plane/reconcile/reconciler-context.ts";
import type { Router, Upstream } from "../../src/control-plane/router/router.ts";
import type {
  DeploymentLogRow,
  DeploymentRow,
  InstanceRow,
  RevisionRow,
} from "../../src/control-plane/storage/schema.ts";
import type { Caller } from "../../src/platform/contract/caller.ts";
import type { Database } from "../../src/platform/database/database.ts";
import { migrate } from "../../src/platform/database/migrate.ts";
import { openPostgres } from "../../src/platform/database/postgres/postgres.ts";
import { openSqlite } from "../../src/platform/database/sqlite/sqlite.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { createDatabase, type DatabaseName } from "../support/databases.ts";
import { type Fault, Life } from "./life.ts";
import { MemoryDriver } from "./memory-driver.ts";
import { VirtualTime } from "./virtual-time.ts";

const log = createLog(process.env.TEST_LOG_LEVEL ?? "silent");
const TABLES = ["deployment_logs", "source_uploads", "instances", "revisions", "deployments"];

/** Coarse, as each moment that somebody waits for is visited; the proportions are those of the service. */
export const SETTINGS: ReconcilerSettings = {
  ...reconcilerSettings({
    deploy_lease_ms: 30_000,
    deploy_deadline_ms: 20_000,
    deploy_drain_ms: 60_000,
    deploy_builds: 1,
    deploy_probes: 3,
  }),
  progress_ms: 4_000,
  drain_check_ms: 5_000,
  stable_ms: 100_000,
  resync_ms: 15_000,
  poll_ms: 15_000,
  probe_ms: 1_000,
  watch_ms: 5_000,
  orphan_check_ms: 30_000,
};

export const CALLER: Caller = {
  tenant_id: "00000000-0000-4000-8000-00000000000b",
  user_id: "ada",
  scopes: ["deployments"],
};
export const ASKING = { caller: CALLER, base_url: "http://threadmill.localhost:2024" };

/** Remembers what it was told, as a router does, and no longer than its process. */
export class MemoryRouter implements Router {
  readonly upstreams = new Map<string, readonly Upstream[]>();
  /** What instances have to end; nothing where nothing is set. */
  readonly in_flight: Map<string, number>;

  constructor(in_flight: Map<string, number>) {
    this.in_flight = in_flight;
  }

  activate(deployment_id: string, upstreams: readonly Upstream[]): void {
    this.upstreams.set(deployment_id, upstreams);
  }

  deactivate(deployment_id: string): void {
    this.upstreams.delete(deployment_id);
  }

  inFlight(instance_id: string): number {
    return this.in_flight.get(instance_id) ?? 0;
  }
}

/** A process that reconciles. */
export interface Process {
  life: Life;
  reconciler: Reconciler;
  router: MemoryRouter;
}

/** The rows of one deployment. */
export interface View {
  deployment: DeploymentRow;
  revisions: RevisionRow[];
  instances: InstanceRow[];
}

/** A database, what deployments run on, the rules of the API, and processes that come and go; in a time of its own. */
export class World {
  readonly database: Database;
  readonly time: VirtualTime;
  readonly deployments: Deployments;
  readonly revisions: Revisions;
  readonly #drop: () => Promise<void>;
  readonly #seal = new KeyRing([generateEncryptionKey()], undefined, log);
  driver = new MemoryDriver();
  in_flight = new Map<string, number>();
  processes: Process[] = [];
  /** How often a process was started in the place of one that had crashed. */
  crashes = 0;

  private constructor(database: Database, time: VirtualTime, drop: () => Promise<void>) {
    this.database = database;
    this.time = time;
    this.#drop = drop;
    this.deployments = new Deployments({ database, seal: this.#seal, log, settings: { max_deployments: undefined } });
    this.revisions = new Revisions({ database, seal: this.#seal, log }, this.deployments);
  }

  static async open(name: DatabaseName): Promise<World> {
    const at = await createDatabase(name);
    const time = new VirtualTime();
    const file = join(at.data_dir, "threadmill.db");
    const database = at.url
      ? openPostgres({ url: at.url, log })
      : openSqlite({ file, synchronous: "normal", clock: time, checkpointer: "writer" });
    await migrate(database, MIGRATIONS.agents);
    await time.rule(database);
    return new World(database, time, async () => {
      await database.close();
      await at.drop();
    });
  }

  async close(): Promise<void> {
    for (const { life } of this.processes) life.end();
    await this.#drop();
  }

  /** Nothing is deployed, nothing runs, and no process is there. */
  async clear(): Promise<void> {
    for (const { life } of this.processes) life.end();
    this.processes = [];
    this.crashes = 0;
    this.driver = new MemoryDriver();
    this.in_flight = new Map();
    for (const table of TABLES) await this.execute(`delete from ${table}`);
  }

  execute = (statement: string): Promise<number> =>
    this.database.write((tx) => tx.run(sql.raw(statement).compile(tx.k)));

  start(fault?: Fault, settings: Partial<ReconcilerSettings> = {}): Process {
    const life = new Life(fault);
    const parts = this.parts(life.driver(this.driver));
    const reconciler = new Reconciler({
      ...parts,
      database: life.database(this.database),
      checkReady: async (address) => ({ failure: await life.call(() => this.driver.ok(address), { counts: false }) }),
      activate: ({ address }) => life.call(() => this.driver.activate(address)),
      wait: this.time.waitOf(life),
      settings: { ...SETTINGS, ...settings },
    });
    const process = { life, reconciler, router: parts.router };
    this.processes.push(process);
    reconciler.start();
    return process;
  }

  parts(driver: DeployDriver): Omit<ReconcilerContext, "checkReady" | "activate" | "wait"> & { router: MemoryRouter } {
    return {
      database: this.database,
      drivers: {
        all: [driver],
        driverFor: ({ source }) => (source === "internal_docker" ? undefined : driver),
        named: () => driver,
        close: async () => undefined,
      },
      router: new MemoryRouter(this.in_flight),
      seal: this.#seal,
      uploads: { fileOf: () => "", removeOf: async () => undefined },
      collectTraces: async () => undefined,
      default_env: { THREADMILL_TRACING: "0.5", THREADMILL_TRACE_STATELESS: "0" },
      clock: this.time,
      log,
      settings: SETTINGS,
    };
  }

  /** Lets everything happen that can happen without the passing of time. */
  async quiet(): Promise<void> {
    for (let calm = 0; calm < 6; calm++) {
      for (const { life } of this.processes) await life.idle();
      await nextTurn();
      if (this.processes.some(({ life }) => life.isBusy)) calm = 0;
    }
  }

  /** So many turns of the event loop. */
  async turns(count: number): Promise<void> {
    for (let turn = 0; turn < count; turn++) await nextTurn();
  }

  /** Lets time pass until something holds. A process that crashed is started again at once. */
  async until(what: string, holds: () => Promise<boolean>, max_moments = 2_000): Promise<void> {
    for (let moments = 0; ; moments++) {
      await this.quiet();
      await this.#restartCrashed();
      if (await holds()) return;
      if (moments > max_moments || !(await this.time.advance())) {
        throw new Error(`It never came to this: ${what}.\n${await this.describe()}`);
      }
    }
  }

  /** Lets so much time pass. */
  async pass(ms: number): Promise<void> {
    const end = this.time.now() + ms;
    await this.until(`${ms} ms`, async () => this.time.now() >= end);
  }

  /** As {@link pass}, with nobody looking on the way. */
  forward = (ms: number): Promise<void> => this.time.goTo(this.time.now() + ms);

  async #restartCrashed(): Promise<void> {
    const dead = this.processes.filter(({ life }) => life.dead);
    this.processes = this.processes.filter(({ life }) => !life.dead);
    for (const _ of dead) {
      this.crashes++;
      this.start();
    }
    if (dead.length > 0) await this.quiet();
  }

  /** A deployment of a git repository whose ref says how it behaves. */
  async deploy(name: string, repo_ref: string, more: Partial<DeploymentCreate> = {}): Promise<string> {
    const repository = { repo_url: "https://git.example/agents.git" };
    const given: DeploymentCreate = {
      name,
      source: "github",
      source_revision_config: { repo_ref },
      ...more,
      source_config: { ...repository, ...more.source_config },
    };
    return (await this.deployments.create(ASKING, given)).id;
  }

  async update(deployment_id: string, repo_ref: string): Promise<void> {
    await this.deployments.patch(ASKING, deployment_id, { source_revision_config: { repo_ref } });
  }

  interrupt = (deployment_id: string, revision_id: string) =>
    this.revisions.interrupt(CALLER, { deployment_id, revision_id });

  redeploy = (deployment_id: string, revision_id: string) =>
    this.revisions.redeploy(ASKING, { deployment_id, revision_id });

  remove = (deployment_id: string) => this.deployments.delete(CALLER, deployment_id);

  async view(deployment_id: string): Promise<View | undefined> {
    const of = <T>(table: string, order: string) =>
      this.database.read.all(
        sql<T>`select * from ${sql.table(table)} where deployment_id = ${deployment_id} order by ${sql.ref(order)}`
          .$castTo<T>()
          .compile(this.database.read.k),
      );
    const [deployment] = await of<DeploymentRow>("deployments", "deployment_id");
    if (!deployment) return undefined;
    return {
      deployment,
      revisions: await of<RevisionRow>("revisions", "seq"),
      instances: await of<InstanceRow>("instances", "instance_id"),
    };
  }

  /** The rows of a deployment that is there. */
  async get(deployment_id: string): Promise<View> {
    const view = await this.view(deployment_id);
    if (!view) throw new Error(`The deployment ${deployment_id} is deleted.`);
    return view;
  }

  logOf = (deployment_id: string): Promise<DeploymentLogRow[]> =>
    this.database.read.all(
      this.database.read.k
        .selectFrom("deployment_logs")
        .selectAll()
        .where("deployment_id", "=", deployment_id)
        .orderBy("log_no"),
    );

  /** The n-th revision, from 1 on. */
  async revision(deployment_id: string, seq: number): Promise<RevisionRow> {
    return (await this.get(deployment_id)).revisions[seq - 1] as RevisionRow;
  }

  /** Lets time pass until the revisions of a deployment have these statuses. */
  become = (deployment_id: string, ...statuses: string[]): Promise<void> =>
    this.until(`the revisions are ${statuses}`, async () => {
      const { revisions } = await this.get(deployment_id);
      return revisions.map(({ status }) => status).join() === statuses.join();
    });

  deleted = (deployment_id: string): Promise<void> =>
    this.until("the deployment is deleted", async () => (await this.view(deployment_id)) === undefined);

  /** For the messages of tests that fail. */
  async describe(): Promise<string> {
    const all = (table: string) =>
      this.database.read.all(sql`select * from ${sql.table(table)}`.compile(this.database.read.k));
    const rows = await Promise.all(["deployments", "revisions", "instances"].map(all));
    return JSON.stringify({ rows, running: await this.driver.list(), now: this.time.now() }, null, 1);
  }
}
