import type { Database } from "../../platform/database/database.ts";
import type { Log } from "../../platform/lib/log.ts";
import type { Service } from "../../platform/lib/service.ts";
import type { HostSetup, StartHost, StateSummary } from "../graph-hosts/host.ts";
import { HostPool } from "../graph-hosts/pool.ts";
import { GraphReader } from "../graph-hosts/reader.ts";
import type { RunRow } from "../storage/schema.ts";
import { readCheckpoints } from "./checkpoint-reads.ts";
import { EventLog } from "./event-log.ts";
import { Rescue } from "./maintenance/rescue.ts";
import { retention } from "./maintenance/retention.ts";
import type { FetchAs } from "./run-requests.ts";
import { ThreadLog } from "./thread-log.ts";
import type { FindToken } from "./token-requests.ts";
import { Worker } from "./worker.ts";

/** Sizes, graces and leases; config.ts says what each means. */
export interface EngineSettings {
  hosts: number;
  jobs_per_worker: number;
  lease_ms: number;
  heartbeat_ms: number;
  cancel_grace_ms: number;
  host_silent_ms: number;
  host_dead_ms: number;
  run_timeout_ms: number;
  event_retention_ms: number;
  poll_ms: number;
  /** Other processes work on the same SQLite file, and nothing tells them of each other's news. */
  share_data: boolean;
  /** The roll-out of a deployment that this instance belongs to; runs are executed by those of one roll-out at a time. */
  rollout: number | undefined;
}

export interface EngineOptions {
  settings: EngineSettings;
  database: Database;
  /** Hosts that execute runs. */
  startHost: StartHost;
  /** The one that reads states. */
  startReader: StartHost;
  /** The graphs of now, for hosts that are started. */
  setup: () => HostSetup;
  log: Log;
  /** Where graphs get tokens of their runs' users. */
  findToken: FindToken;
  /** How graphs send requests to this server. */
  fetchAs: FetchAs;
}

/** How often somebody who is told of news looks for them all the same. */
const IDLE_POLL_MS = 1_000;
/** Questions about state and graphs that take longer than this are given up. */
const QUESTION_TIMEOUT_MS = 30_000;

/** Executes runs. Whoever accepts them writes a row and gives a hint; the engine does the rest. */
export class Engine {
  readonly events: EventLog;
  readonly threadEvents: ThreadLog;
  readonly reader: GraphReader;
  readonly #pool: HostPool;
  readonly #worker: Worker;
  readonly #rescue: Rescue;
  readonly #maintenance: Service[];
  readonly #options: EngineOptions;

  constructor(options: EngineOptions) {
    const { settings, database, log, startHost, startReader, setup, findToken, fetchAs } = options;
    this.#options = options;
    const isAlone = database.read.dialect.name === "sqlite" && !settings.share_data;
    const idle_poll_ms = settings.share_data ? settings.poll_ms : IDLE_POLL_MS;
    this.events = new EventLog(database, isAlone ? IDLE_POLL_MS : settings.poll_ms);
    this.threadEvents = new ThreadLog(database, this.events, idle_poll_ms);
    this.reader = new GraphReader({
      startHost: startReader,
      setup,
      timeout_ms: QUESTION_TIMEOUT_MS,
      log,
      onRequest: (request) => readCheckpoints(database, request),
    });
    this.#pool = new HostPool(
      {
        startHost,
        setup,
        log,
        size: settings.hosts,
        jobs_per_host: settings.jobs_per_worker,
        silent_ms: settings.host_silent_ms,
        dead_ms: settings.host_dead_ms,
      },
      {
        onMessage: (message, host) => this.#worker.onMessage(message, host),
        onHostLost: (runs, reason) => this.#worker.onHostLost(runs, reason),
        onStuck: (runs) => this.#worker.onStuck(runs),
        onRoom: () => this.#worker.onRoom(),
      },
    );
    const readState = (run: RunRow) => this.#readState(run);
    const shared = { ...settings, database, events: this.events, log, readState };
    this.#worker = new Worker({ ...shared, findToken, fetchAs, pool: this.#pool, idle_poll_ms });
    this.#rescue = new Rescue(shared);
    this.#maintenance = [this.#rescue.service(), retention(database, settings.event_retention_ms, log)];
  }

  /** Starts the graph hosts; runs are claimed from now on, or from when the roll-out of this instance is the claimant. */
  async start(): Promise<void> {
    if (this.#options.database.read.dialect.name === "sqlite") while (await this.#rescue.rescueLost());
    this.#pool.start();
    this.#worker.start();
    for (const service of this.#maintenance) service.start();
  }

  /** Reasons by graph, for the graphs that could not be loaded. */
  get loadFailures(): Promise<Record<string, string>> {
    return this.#pool.loaded;
  }

  /** New runs and questions see the graphs as they are in the files now. */
  reload(): Promise<Record<string, string>> {
    this.reader.reload();
    return this.#pool.reload();
  }

  /** Lets runs end or hands them back, then stops everything. */
  async stop(grace_ms: number): Promise<void> {
    await this.#worker.drain(grace_ms);
    await this.#worker.stop();
    await Promise.all(this.#maintenance.map((service) => service.stop()));
    await Promise.all([this.#pool.stop(), this.reader.stop()]);
  }

  async #readState(run: RunRow): Promise<StateSummary | undefined> {
    const { config } = JSON.parse(run.kwargs);
    const checkpoint = { thread_id: run.thread_id };
    try {
      return await this.reader.ask({ kind: "summary", graph: { graph_id: run.graph_id, config }, checkpoint });
    } catch (error) {
      this.#options.log.warn({ error, run_id: run.run_id }, "the state that a run has left could not be read");
      return undefined;
    }
  }
}
