import type { Registry } from "prom-client";
import type { Database, Tx } from "../../platform/database/database.ts";
import { type BackgroundService, periodicService } from "../../platform/lib/background-service.ts";
import type { Log } from "../../platform/lib/log.ts";
import type { HostRequest, HostSetup, StateSummary } from "../graph-hosts/host.ts";
import { HostPools, type HostsByLanguage, LanguageReaders } from "../graph-hosts/language-hosts.ts";
import type { ClaimRules } from "../storage/claims/claims-in-turns.ts";
import { deleteEndedRuns, deleteExpiredEvents } from "../storage/events.ts";
import { countActiveRuns, oldestDueMs } from "../storage/run-overview.ts";
import type { RunRow } from "../storage/schema.ts";
import { deleteEndedDeliveries } from "../storage/webhooks.ts";
import { Store, type StoreSettings } from "../store/store.ts";
import { type PendingCancel, publishCancels } from "./cancellation/cancel.ts";
import { Cancellations } from "./cancellation/cancellations.ts";
import { type FetchAs, type FindToken, readCheckpoints } from "./execution/host-requests.ts";
import { Rescue } from "./run-leases.ts";
import { RunMetrics } from "./run-metrics.ts";
import type { SettleContext } from "./settlement/settle.ts";
import { EventLog } from "./streams/event-log.ts";
import { ThreadLog } from "./streams/thread-log.ts";
import { RunTraces, TraceDeletions, type TracingSettings } from "./tracing/run-traces.ts";
import { TraceQueue, type TraceStore } from "./tracing/trace-queue.ts";
import { Worker } from "./worker.ts";

/** Pool sizes, timeouts and leases; see config/settings. */
export interface EngineSettings extends TracingSettings {
  jobs_per_worker: number;
  lease_ms: number;
  heartbeat_ms: number;
  cancel_grace_ms: number;
  shutdown_grace_ms: number;
  host_silent_ms: number;
  host_dead_ms: number;
  run_timeout_ms: number;
  event_retention_ms: number;
  /** Undefined if the runs of a thread are kept until the thread is deleted. */
  run_retention_ms: number | undefined;
  poll_ms: number;
  /** Whether other processes use the same SQLite file. SQLite has no notifications between processes. */
  share_data: boolean;
  store: StoreSettings;
  max_loaded_vector_bytes: number;
  /** Rollout of this instance; undefined outside a deployment. While another rollout is active, this instance claims no runs. */
  rollout: number | undefined;
  /** Undefined: claims follow the order of the queue, except that no workspace keeps all slots. */
  claim_rules: ClaimRules | undefined;
  /** With `api`, this process executes no runs. With `worker`, it leaves the retention to other processes. */
  role: "all" | "api" | "worker";
}

export interface EngineOptions {
  settings: EngineSettings;
  database: Database;
  languages: HostsByLanguage;
  /** Returns the current graphs. Called for each new host. */
  setup: () => HostSetup;
  log: Log;
  metrics: Registry;
  findToken: FindToken;
  fetchAs: FetchAs;
  /** Undefined if no traces are stored. */
  traceStore: TraceStore | undefined;
}

/** Poll interval of subscribers to hints, in case a hint is lost. */
const IDLE_POLL_MS = 1_000;
const QUERY_TIMEOUT_MS = 30_000;
/** Time in which a run is settled after its grace period. */
const SETTLEMENT_MS = 250;
/** Maximum interval between sweeps. A shorter retention shortens it, down to 50 ms. */
const MAX_RETENTION_INTERVAL_MS = 10_000;
/** Maximum number of runs or webhook deliveries per transaction of the retention. Other writes wait for each transaction. */
const RETENTION_BATCH = 200;
const WEBHOOK_RETENTION_MS = 30 * 86_400_000;

/** Executes runs. The API stores a pending run and emits a hint; the engine claims, executes and settles it. */
export class Engine {
  readonly events: EventLog;
  readonly threadEvents: ThreadLog;
  readonly cancellations: Cancellations;
  readonly reader: LanguageReaders;
  readonly store: Store;
  readonly #pool: HostPools;
  readonly #worker: Worker;
  readonly #rescue: Rescue;
  readonly #maintenance: BackgroundService[];
  readonly #traces: RunTraces | undefined;
  readonly #trace_deletions: TraceDeletions;
  readonly #options: EngineOptions;
  readonly #settling: SettleContext;

  constructor(options: EngineOptions) {
    const { settings, database, log, languages, setup, findToken, fetchAs } = options;
    this.#options = options;
    const isSingleProcess = database.read.dialect.name === "sqlite" && !settings.share_data;
    const idle_poll_ms = settings.share_data ? settings.poll_ms : IDLE_POLL_MS;
    this.events = new EventLog(database, isSingleProcess ? IDLE_POLL_MS : settings.poll_ms);
    this.threadEvents = new ThreadLog(database, this.events, idle_poll_ms);
    const queue = options.traceStore && new TraceQueue(options.traceStore, log);
    this.#trace_deletions = new TraceDeletions({ database, queue, log });
    const deleteTraces = () => this.#trace_deletions.sweep();
    const readers = () => this.events.readers;
    const metrics = new RunMetrics({ registry: options.metrics, database, readers });
    this.#traces = queue && new RunTraces(settings, queue, { log, metrics });
    const settling = { database, events: this.events, log, metrics, traces: this.#traces, deleteTraces };
    this.#settling = settling;
    this.cancellations = new Cancellations(settling);
    const onRequest = (request: HostRequest) => readCheckpoints(database, request);
    this.reader = new LanguageReaders({ languages, setup, timeout_ms: QUERY_TIMEOUT_MS, log, onRequest });
    const { max_loaded_vector_bytes } = settings;
    this.store = new Store(database, { ...settings.store, max_loaded_vector_bytes }, (query) =>
      this.reader.query(query),
    );
    this.#pool = new HostPools(
      {
        languages,
        setup,
        log,
        jobs_per_host: settings.jobs_per_worker,
        silent_ms: settings.host_silent_ms,
        dead_ms: settings.host_dead_ms,
        abandoned_ms: settings.cancel_grace_ms + SETTLEMENT_MS,
        retirement_ms: settings.shutdown_grace_ms,
      },
      {
        onMessage: (message, host) => this.#worker.onMessage(message, host),
        onHostLost: (runs, reason) => {
          metrics.onHostFailure();
          this.#worker.onHostLost(runs, reason);
        },
        onEvicted: (runs) => this.#worker.onEvicted(runs),
        onCapacity: () => this.#worker.onCapacity(),
      },
    );
    const readState = (run: RunRow) => this.#readState(run);
    const shared = { ...settings, ...settling, readState, store: this.store };
    this.#worker = new Worker({ ...shared, findToken, fetchAs, pool: this.#pool, idle_poll_ms });
    this.#rescue = new Rescue(shared);
    const retained = retention(database, settings, log);
    const sweeper = storeSweeper(this.store, settings.store, log);
    this.#maintenance = [
      this.#rescue.service(),
      this.#trace_deletions,
      ...(settings.role === "worker" ? [] : [retained, sweeper]),
      ...(settings.role === "api" ? [queueWatch(database, log)] : []),
    ];
  }

  /** Starts everything except {@link startClaiming}. With the role `api`, no graph host is started. */
  async start(): Promise<void> {
    const { database } = this.#options;
    if (database.read.dialect.name === "sqlite") while (await this.#rescue.rescueLost());
    if (this.#executesRuns) this.#pool.start();
    for (const service of this.#maintenance) service.start();
  }

  /** Claims runs while no other rollout is active; not with the role `api`. Has no effect after {@link stop}. */
  startClaiming(): void {
    if (this.#executesRuns) this.#worker.start();
  }

  get #executesRuns(): boolean {
    return this.#options.settings.role !== "api";
  }

  /** Error messages of the graphs that failed to load, by graph id. With the role `api`, no graphs are loaded. */
  get loadFailures(): Promise<Record<string, string>> {
    return this.#pool.loaded;
  }

  /** Reloads the graphs for new runs and reads. */
  reload(): Promise<Record<string, string>> {
    this.reader.reload();
    return this.#pool.reload();
  }

  /** Publishes cancels after the commit of {@link cancelLocked}. */
  publishCancels(cancels: readonly PendingCancel[]): void {
    publishCancels(this.#settling, cancels);
  }

  /** Deletes the traces of deleted runs, after the commit of the deletion. */
  deleteTraces(): void {
    this.#trace_deletions.sweep();
  }

  /** Waits up to `grace_ms` for runs to end, returns the remaining runs to the queue, and stops all services. */
  async stop(grace_ms: number): Promise<void> {
    await this.#worker.drain(grace_ms);
    await this.#worker.stop();
    await this.#traces?.stop();
    await Promise.all(this.#maintenance.map((service) => service.stop()));
    await Promise.all([this.#pool.stop(), this.reader.stop(), this.store.stop()]);
  }

  async #readState(run: RunRow): Promise<StateSummary | undefined> {
    const { config } = JSON.parse(run.kwargs);
    const checkpoint = { thread_id: run.thread_id };
    try {
      return await this.reader.query({ kind: "summary", graph: { graph_id: run.graph_id, config }, checkpoint });
    } catch (error) {
      this.#options.log.warn({ error, run_id: run.run_id }, "cannot read the state of a finished run");
      return undefined;
    }
  }
}

/** Deletes expired events, expired stateless runs, old runs on threads, and old webhook deliveries. */
function retention(
  database: Database,
  { event_retention_ms: retention_ms, run_retention_ms }: EngineSettings,
  log: Log,
): BackgroundService {
  const repeat = async (deleteBatch: (tx: Tx) => Promise<number>) => {
    while ((await database.write(deleteBatch)) > 0);
  };
  const deleteRuns = (temporary: boolean, older_than_ms: number) =>
    repeat((tx) => deleteEndedRuns(tx, { temporary, older_than_ms }, RETENTION_BATCH));
  const sweep = async () => {
    await repeat((tx) => deleteExpiredEvents(tx, retention_ms, RETENTION_BATCH));
    await deleteRuns(true, retention_ms);
    if (run_retention_ms !== undefined) await deleteRuns(false, run_retention_ms);
    await repeat((tx) => deleteEndedDeliveries(tx, WEBHOOK_RETENTION_MS, RETENTION_BATCH));
  };
  return periodicService(Math.min(MAX_RETENTION_INTERVAL_MS, Math.max(retention_ms, 50)), sweep, (error) =>
    log.error({ error }, "event retention failed"),
  );
}

const QUEUE_WATCH_INTERVAL_MS = 2_000;
/** A worker claims a run within milliseconds, so this time without a running run means that no worker claims runs. */
const STUCK_MS = 5_000;

/** Logs when runs wait although no run is executed: most likely, no worker is started. */
function queueWatch({ search }: Database, log: Log): BackgroundService {
  let isStuck = false;
  const check = async () => {
    const oldest_due_ms = (await countActiveRuns(search, "running")) > 0 ? 0 : await oldestDueMs(search);
    if (oldest_due_ms < STUCK_MS) {
      if (isStuck) log.info("runs are executed again");
      isStuck = false;
    } else if (!isStuck) {
      isStuck = true;
      const pending = await countActiveRuns(search, "pending");
      log.warn({ pending, oldest_due_ms }, "runs are waiting, but no process is executing runs: start a worker");
    }
  };
  return periodicService(QUEUE_WATCH_INTERVAL_MS, check, (error) => log.error({ error }, "reading the queue failed"));
}

/** Deletes expired items of the store. */
const storeSweeper = (store: Store, { ttl }: StoreSettings, log: Log): BackgroundService =>
  periodicService(
    ttl.sweep_interval_ms,
    () => store.sweep(),
    (error) => log.error({ error }, "cannot delete expired store items"),
  );
