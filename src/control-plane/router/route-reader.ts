import type { Seal } from "../../access/index.ts";
import type { Database, Tx } from "../../platform/database/database.ts";
import type { Clock } from "../../platform/lib/clock.ts";
import type { Log } from "../../platform/lib/log.ts";
import { repeating, type Service } from "../../platform/lib/service.ts";
import { apiKeyPlace } from "../reconcile/instance-order.ts";
import { type RouteRow, routesOf, routesOfSlug } from "../storage/routes.ts";
import type { Upstream } from "./router.ts";
import type { Deployment, Routes } from "./routes.ts";

export interface RouteReaderOptions {
  database: Database;
  seal: Seal;
  clock: Clock;
  log: Log;
  routes: Routes;
}

/** How often the rows of what is known are read again, in case a hint was lost. */
const LOOK_MS = 5_000;

/**
 * For so long the reconciler of this process is believed rather than the rows: it switches before its commit. When another
 * process has taken the deployment since, the rows are believed after that; what they name is drained by time.
 */
const TOLD_MS = 10_000;

/** Deployments read at a time. */
const BATCH = 500;

/**
 * Reads from the database what this process has not been told: a deployment when it is first asked for, and then at each hint.
 * On SQLite there is one process, so what its reconciler has said once holds.
 */
export class RouteReader implements Service {
  readonly #options: RouteReaderOptions;
  readonly #finding = new Map<string, Promise<Deployment | undefined>>();
  /** Deployments whose rows are being read; true: they have changed since. */
  readonly #reading = new Map<string, boolean>();
  readonly #looking: Service;
  readonly #isAlone: boolean;
  #unlisten: () => void = () => undefined;

  constructor(options: RouteReaderOptions) {
    this.#options = options;
    this.#isAlone = options.database.read.dialect.name === "sqlite";
    this.#looking = repeating(LOOK_MS, () => this.#look(), this.#onError);
  }

  start(): void {
    const { database } = this.#options;
    this.#unlisten = database.hints.listen("deployment", ({ deployment_id }) => void this.#hear(deployment_id));
    this.#looking.start();
  }

  async stop(): Promise<void> {
    this.#unlisten();
    await this.#looking.stop();
  }

  /** The deployment of a slug, which may be nobody's. */
  find(slug: string): Promise<Deployment | undefined> {
    let finding = this.#finding.get(slug);
    if (!finding) {
      finding = this.#find(slug).finally(() => this.#finding.delete(slug));
      this.#finding.set(slug, finding);
    }
    return finding;
  }

  async #find(slug: string): Promise<Deployment | undefined> {
    const rows = await this.#read((tx) => routesOfSlug(tx, slug));
    this.#learn(rows);
    return this.#options.routes.find(slug);
  }

  /** One reading at a time of each, and another when there was a hint meanwhile. */
  async #hear(deployment_id: string): Promise<void> {
    if (!this.#needs(deployment_id)) return;
    if (this.#reading.has(deployment_id)) return void this.#reading.set(deployment_id, true);
    try {
      do {
        this.#reading.set(deployment_id, false);
        await this.#readAgain([deployment_id]);
      } while (this.#reading.get(deployment_id));
    } catch (error) {
      this.#onError(error);
    } finally {
      this.#reading.delete(deployment_id);
    }
  }

  async #look(): Promise<void> {
    const known = this.#options.routes.deployment_ids.filter((id) => this.#needs(id));
    for (let i = 0; i < known.length; i += BATCH) await this.#readAgain(known.slice(i, i + BATCH));
  }

  async #readAgain(deployment_ids: readonly string[]): Promise<void> {
    const rows = await this.#read((tx) => routesOf(tx, deployment_ids));
    this.#learn(rows);
    const found = new Set(rows.map(({ deployment_id }) => deployment_id));
    for (const id of deployment_ids) if (!found.has(id) && this.#mayReplace(id)) this.#options.routes.remove(id);
  }

  /** Rows that are not older than anything this process has been told. */
  async #read(read: (tx: Tx) => Promise<RouteRow[]>): Promise<RouteRow[]> {
    const { database, routes } = this.#options;
    for (;;) {
      const { told } = routes;
      const rows = await read(database.read);
      if (routes.told === told) return rows;
    }
  }

  #learn(rows: readonly RouteRow[]): void {
    const { routes } = this.#options;
    for (const [deployment_id, [first, ...others]] of Map.groupBy(rows, (row) => row.deployment_id)) {
      const { slug, tenant_id } = first as RouteRow;
      routes.name({ deployment_id, slug, tenant_id });
      if (this.#mayReplace(deployment_id))
        routes.set(
          deployment_id,
          [first as RouteRow, ...others].flatMap((row) => this.#upstreamOf(row)),
        );
    }
  }

  #upstreamOf({ tenant_id, instance_id, address, api_key }: RouteRow): Upstream[] {
    if (instance_id === null || address === null || api_key === null) return [];
    try {
      return [
        { instance_id, address, api_key: this.#options.seal.open(api_key, apiKeyPlace({ tenant_id, instance_id })) },
      ];
    } catch (error) {
      this.#options.log.error(
        { error, instance_id },
        "the key of an instance cannot be opened, so it gets no requests",
      );
      return [];
    }
  }

  /** Whether rows could say anything new of a deployment. One that nobody has asked for yet is read when somebody does. */
  #needs(deployment_id: string): boolean {
    const route = this.#options.routes.get(deployment_id);
    return route !== undefined && !(this.#isAlone && route.told_at !== undefined);
  }

  #mayReplace(deployment_id: string): boolean {
    const told_at = this.#options.routes.get(deployment_id)?.told_at;
    if (told_at === undefined) return true;
    return !this.#isAlone && this.#options.clock.now() - told_at > TOLD_MS;
  }

  readonly #onError = (error: unknown): void =>
    this.#options.log.warn({ error }, "where requests of deployments go could not be read; it is tried again");
}
