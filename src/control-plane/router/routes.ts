import type { Seal } from "../../access/index.ts";
import type { Database, Tx } from "../../platform/database/database.ts";
import { type BackgroundService, periodicService } from "../../platform/lib/background-service.ts";
import type { Clock, Wait } from "../../platform/lib/clock.ts";
import type { Log } from "../../platform/lib/log.ts";
import { apiKeyAad } from "../rollout/instance-spec.ts";
import { type RouteRow, routesOf, routesOfSlug } from "../storage/instances.ts";
import type { Upstream } from "./router.ts";

export interface Deployment {
  deployment_id: string;
  slug: string;
  tenant_id: string;
}

export interface Target extends Upstream {
  hostname: string;
  port: string;
}

interface Route {
  targets: readonly Target[];
  /** Time at which the reconciler of this process set the route; undefined for a route from the database. */
  local_set_at: number | undefined;
  /** Whether a target authenticates users. Without targets, the value of the last ones. */
  custom_auth: boolean;
}

/** Cached routes: the instances that receive the requests of each deployment. A change replaces one entry. */
export class Routes {
  readonly #wait: Wait;
  readonly #by_id = new Map<string, Route>();
  readonly #by_slug = new Map<string, Deployment>();
  readonly #waiting = new Map<string, AbortController>();
  /** Counts the changes by the reconciler of this process: rows that were read before a change may be outdated. */
  local_changes = 0;

  constructor(wait: Wait) {
    this.#wait = wait;
  }

  find(slug: string): Deployment | undefined {
    return this.#by_slug.get(slug);
  }

  get(deployment_id: string): Route | undefined {
    return this.#by_id.get(deployment_id);
  }

  get deployment_ids(): string[] {
    return [...this.#by_id.keys()];
  }

  name(deployment: Deployment): void {
    this.#by_slug.set(deployment.slug, deployment);
  }

  set(deployment_id: string, upstreams: readonly Upstream[], local_set_at?: number): void {
    if (local_set_at !== undefined) this.local_changes += 1;
    const targets = upstreams.flatMap(targetOf);
    const before = this.#by_id.get(deployment_id)?.custom_auth ?? false;
    const custom_auth = targets.length > 0 ? targets.some((target) => target.custom_auth) : before;
    this.#by_id.set(deployment_id, { targets, local_set_at, custom_auth });
    this.#wake(deployment_id);
  }

  remove(deployment_id: string): void {
    this.local_changes += 1;
    this.#by_id.delete(deployment_id);
    for (const [slug, deployment] of this.#by_slug)
      if (deployment.deployment_id === deployment_id) this.#by_slug.delete(slug);
    this.#wake(deployment_id);
  }

  /** Resolves at the next change of a deployment's route, or after `ms`. */
  async change(deployment_id: string, ms: number): Promise<void> {
    const waiting = this.#waiting.get(deployment_id) ?? new AbortController();
    this.#waiting.set(deployment_id, waiting);
    await this.#wait(ms, waiting.signal);
  }

  #wake(deployment_id: string): void {
    this.#waiting.get(deployment_id)?.abort();
    this.#waiting.delete(deployment_id);
  }
}

/** Empty when the address is not an http URL. */
function targetOf(upstream: Upstream): Target[] {
  const url = URL.parse(upstream.address);
  if (url?.protocol !== "http:") return [];
  // The HTTP client of Node.js requires an IPv6 address without brackets.
  return [{ ...upstream, hostname: url.hostname.replaceAll(/[[\]]/g, ""), port: url.port || "80" }];
}

export interface RouteReaderOptions {
  database: Database;
  seal: Seal;
  clock: Clock;
  log: Log;
  routes: Routes;
}

/** Interval at which the rows of known deployments are read again, in case a hint was lost. */
const RESYNC_MS = 5_000;

/**
 * For this time, a route from the reconciler of this process takes precedence over the rows, because the reconciler switches the
 * traffic before it commits. Later, another process may have claimed the deployment, and the rows take precedence.
 */
const LOCAL_ROUTE_TTL_MS = 10_000;

/** Maximum number of deployments per query. */
const BATCH = 500;

/**
 * Reads routes from the database at the first request for a deployment, after each hint and at intervals. With SQLite there is only one
 * process, so a route from its reconciler stays valid.
 */
export class RouteReader implements BackgroundService {
  readonly #options: RouteReaderOptions;
  readonly #lookups = new Map<string, Promise<Deployment | undefined>>();
  /** Deployments whose rows are being read. The value is true if a hint arrived during the read. */
  readonly #reading = new Map<string, boolean>();
  readonly #resyncing: BackgroundService;
  readonly #isSingleProcess: boolean;
  #unlisten: () => void = () => undefined;

  constructor(options: RouteReaderOptions) {
    this.#options = options;
    this.#isSingleProcess = options.database.read.dialect.name === "sqlite";
    this.#resyncing = periodicService(RESYNC_MS, () => this.#resync(), this.#onError);
  }

  start(): void {
    const { database } = this.#options;
    this.#unlisten = database.hints.listen("deployment", ({ deployment_id }) => void this.#onHint(deployment_id));
    this.#resyncing.start();
  }

  async stop(): Promise<void> {
    this.#unlisten();
    await this.#resyncing.stop();
  }

  /** Concurrent calls share a query. */
  find(slug: string): Promise<Deployment | undefined> {
    let lookup = this.#lookups.get(slug);
    if (!lookup) {
      lookup = this.#find(slug).finally(() => this.#lookups.delete(slug));
      this.#lookups.set(slug, lookup);
    }
    return lookup;
  }

  async #find(slug: string): Promise<Deployment | undefined> {
    const rows = await this.#read((tx) => routesOfSlug(tx, slug));
    this.#apply(rows);
    return this.#options.routes.find(slug);
  }

  /** Reads the rows of a deployment, never twice at the same time. Reads again if a hint arrived during the read. */
  async #onHint(deployment_id: string): Promise<void> {
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

  async #resync(): Promise<void> {
    const known = this.#options.routes.deployment_ids.filter((id) => this.#needs(id));
    for (let i = 0; i < known.length; i += BATCH) await this.#readAgain(known.slice(i, i + BATCH));
  }

  async #readAgain(deployment_ids: readonly string[]): Promise<void> {
    const rows = await this.#read((tx) => routesOf(tx, deployment_ids));
    this.#apply(rows);
    const found = new Set(rows.map(({ deployment_id }) => deployment_id));
    for (const id of deployment_ids) if (!found.has(id) && this.#mayReplace(id)) this.#options.routes.remove(id);
  }

  /** Reads the rows again if the reconciler of this process has changed a route during the read. */
  async #read(read: (tx: Tx) => Promise<RouteRow[]>): Promise<RouteRow[]> {
    const { database, routes } = this.#options;
    for (;;) {
      const { local_changes } = routes;
      const rows = await read(database.read);
      if (routes.local_changes === local_changes) return rows;
    }
  }

  #apply(rows: readonly RouteRow[]): void {
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

  #upstreamOf({ tenant_id, instance_id, address, api_key, custom_auth }: RouteRow): Upstream[] {
    if (instance_id === null || address === null || api_key === null) return [];
    try {
      const opened = this.#options.seal.open(api_key, apiKeyAad({ tenant_id, instance_id }));
      return [{ instance_id, address, api_key: opened, custom_auth: custom_auth === 1 }];
    } catch (error) {
      // The instance receives no requests.
      this.#options.log.error({ error, instance_id }, "failed to decrypt the API key of an instance");
      return [];
    }
  }

  /** Whether the stored routes of a deployment may be newer than the cached one. A deployment without one is read at its first request. */
  #needs(deployment_id: string): boolean {
    const route = this.#options.routes.get(deployment_id);
    return route !== undefined && !(this.#isSingleProcess && route.local_set_at !== undefined);
  }

  #mayReplace(deployment_id: string): boolean {
    const local_set_at = this.#options.routes.get(deployment_id)?.local_set_at;
    if (local_set_at === undefined) return true;
    return !this.#isSingleProcess && this.#options.clock.now() - local_set_at > LOCAL_ROUTE_TTL_MS;
  }

  readonly #onError = (error: unknown): void => this.#options.log.warn({ error }, "reading deployment routes failed");
}
