import { setImmediate } from "node:timers/promises";
import { type BackgroundService, periodicService } from "../../platform/lib/background-service.ts";
import type { Log } from "../../platform/lib/log.ts";
import type { FromHost, GraphHost, HostSetup, RunEpoch, RunOrder, StartHost, ToHost } from "./host.ts";

export interface PoolOptions {
  startHost: StartHost;
  /** Starts the host of a run that was active in a host, or in processes, that died. */
  startIsolated: StartHost;
  /** Called each time a host starts, so that the hosts started by a reload load the current graphs. */
  setup: () => HostSetup;
  size: number;
  jobs_per_host: number;
  /** A host that has not responded for this long receives no new runs, and an additional host starts. */
  silent_ms: number;
  /** A host that has not responded for this long is terminated; at least {@link LOAD_TIMEOUT_MS} while it loads the graphs. */
  dead_ms: number;
  /** If the code of a stopped run still executes after this time, its host is replaced. The run has been settled before. */
  abandoned_ms: number;
  /** Time for the other runs of a host that is replaced to end their current step. */
  retirement_ms: number;
  log: Log;
}

export interface PoolListener {
  onMessage(message: FromHost, host: PooledHost): void;
  /** Called after a host died. Any of these runs may have caused it. */
  onHostLost(runs: RunOrder[], reason: string): void;
  /** Called with runs that have not started in their host, which hangs or has ended. */
  onEvicted(runs: RunOrder[]): void;
  /** Called when the pool may have free capacity. */
  onCapacity(): void;
}

/** Maximum number of additional hosts while others are unresponsive. Each uses about 60 MB. */
const MAX_ADDITIONAL = 4;

/** Maximum number of isolated hosts, each for one run that may have killed a host. */
const MAX_ISOLATED = 2;

const PING_INTERVAL_MS = 250;

/** A host that is loading the graphs can respond only between two imports. On a busy machine, one import has taken more than a minute. */
const LOAD_TIMEOUT_MS = 180_000;

/** Delay before the next start after a host died while it loaded the graphs. */
const RESTART_DELAY_MS = 1_000;

export class PooledHost {
  readonly runs = new Map<string, RunOrder & { started?: boolean }>();
  /** Resolves with the load failures by graph id. */
  readonly loaded = Promise.withResolvers<Record<string, string>>();
  /** Whether the host executes only one run, which may have ended a host or processes. */
  readonly isolated: boolean;
  host!: GraphHost;
  /** When the unanswered ping was sent; undefined if there is none. */
  pinged_at: number | undefined;
  /** The host receives no new runs and is terminated after its last run. */
  retiring = false;
  ready = false;

  constructor(isolated: boolean) {
    this.isolated = isolated;
    // Callers need not handle a rejection.
    this.loaded.promise.catch(() => undefined);
  }

  send(message: ToHost): void {
    this.host.send(message);
  }

  isUnresponsive(now: number, silent_ms: number): boolean {
    return this.ready && this.pinged_at !== undefined && now - this.pinged_at > silent_ms;
  }
}

/** Assigns runs to responsive hosts, starts additional hosts while others are unresponsive, and terminates hosts that hang. */
export class HostPool implements BackgroundService {
  readonly #options: PoolOptions;
  readonly #listener: PoolListener;
  readonly #hosts = new Set<PooledHost>();
  readonly #pinging: BackgroundService;
  readonly #warned = new Set<string>();
  #pings = 0;
  #stopped = false;

  constructor(options: PoolOptions, listener: PoolListener) {
    this.#options = options;
    this.#listener = listener;
    this.#pinging = periodicService(
      PING_INTERVAL_MS,
      async () => this.#ping(),
      (error) => options.log.error({ error }, "graph host ping failed"),
    );
  }

  start(): void {
    this.#fill();
    this.#pinging.start();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#pinging.stop();
    await Promise.all([...this.#hosts].map((host) => host.host.terminate()));
    this.#hosts.clear();
  }

  /** The load failures by graph id, from the first host. Rejects if the host ends before it has loaded the graphs. */
  get loaded(): Promise<Record<string, string>> {
    const [first] = this.#hosts;
    return first ? first.loaded.promise : Promise.resolve({});
  }

  capacity(): number {
    return this.#available().reduce((sum, host) => sum + Math.max(0, this.#options.jobs_per_host - host.runs.size), 0);
  }

  /** Reserves a slot for a run in the host with the fewest runs. Undefined if no slot is free. */
  reserve(order: RunOrder, { isolated }: { isolated: boolean }): PooledHost | undefined {
    const host = isolated ? this.#addIsolated() : this.#leastLoaded();
    host?.runs.set(order.run_id, order);
    return host;
  }

  sendToRun(run_id: string, message: ToHost): void {
    for (const host of this.#hosts) if (host.runs.has(run_id)) host.send(message);
  }

  has(host: PooledHost): boolean {
    return this.#hosts.has(host);
  }

  /** Frees the slot of a run. A node that ignores the abort signal may continue in the host. */
  release({ run_id, epoch }: RunEpoch, host: PooledHost): void {
    // A later claim of the run may occupy the same host.
    if (host.runs.get(run_id)?.epoch === epoch) host.runs.delete(run_id);
    if (host.runs.size === 0 && (host.retiring || host.isolated)) this.#end(host);
    this.#listener.onCapacity();
  }

  /** Replaces all hosts, so that the graphs are loaded again. Running runs complete in the old hosts. */
  reload(): Promise<Record<string, string>> {
    const old = [...this.#hosts];
    for (const host of old) host.retiring = true;
    const fresh = this.#add(false);
    this.#fill();
    for (const host of old) if (host.runs.size === 0) this.#end(host);
    return fresh.loaded.promise;
  }

  /** Logs each warning once, because all hosts load the same graphs. */
  #warn(warnings: readonly string[]): void {
    for (const warning of warnings)
      if (!this.#warned.has(warning)) this.#options.log.warn({ warning }, "graphs loaded with a warning");
    for (const warning of warnings) this.#warned.add(warning);
  }

  #available(): PooledHost[] {
    const now = performance.now();
    return [...this.#hosts].filter(
      (host) => !host.retiring && !host.isolated && !host.isUnresponsive(now, this.#options.silent_ms),
    );
  }

  #leastLoaded(): PooledHost | undefined {
    const free = this.#available().filter((host) => host.runs.size < this.#options.jobs_per_host);
    return free.toSorted((a, b) => a.runs.size - b.runs.size)[0];
  }

  /** Starts hosts until the configured number is responsive. */
  #fill(): void {
    if (this.#stopped) return;
    while (this.#available().length < this.#options.size) this.#add(false);
    this.#listener.onCapacity();
  }

  #addIsolated(): PooledHost | undefined {
    const count = [...this.#hosts].filter((host) => host.isolated).length;
    return count < MAX_ISOLATED ? this.#add(true) : undefined;
  }

  #add(isolated: boolean): PooledHost {
    const pooled = new PooledHost(isolated);
    const startHost = isolated ? this.#options.startIsolated : this.#options.startHost;
    pooled.host = startHost(this.#options.setup(), {
      onMessage: (message) => this.#receive(pooled, message),
      onExit: (reason) => this.#handleExit(pooled, reason),
    });
    this.#hosts.add(pooled);
    return pooled;
  }

  #receive(host: PooledHost, message: FromHost): void {
    if (message.type === "pong") {
      host.pinged_at = undefined;
      const abandoned = message.abandoned?.filter(({ for_ms }) => for_ms > this.#options.abandoned_ms) ?? [];
      // They have been settled without the host. The host can execute a later claim of the same run.
      for (const { run_id, epoch } of abandoned) if (host.runs.get(run_id)?.epoch === epoch) host.runs.delete(run_id);
      if (abandoned[0] && !host.retiring) this.#retire(host, abandoned[0].run_id);
      this.#endAdditional(host);
    } else if (message.type === "loaded") {
      host.ready = true;
      // A ping that waits while the graphs are loaded would make the host appear unresponsive until its response arrives.
      if (host.pinged_at !== undefined) host.pinged_at = performance.now();
      host.loaded.resolve(message.failures);
      this.#warn(message.warnings);
      this.#listener.onCapacity();
    } else {
      if (message.type === "started") {
        const run = host.runs.get(message.run_id);
        if (run?.epoch === message.epoch) run.started = true;
      }
      this.#listener.onMessage(message, host);
    }
  }

  #handleExit(host: PooledHost, reason: string): void {
    host.loaded.reject(new Error(`The graph host exited while loading the graphs: ${reason}.`));
    this.#hosts.delete(host);
    if (this.#stopped) return;
    this.#options.log.error({ reason, run_ids: [...host.runs.keys()] }, "graph host exited unexpectedly");
    // A host that died while it loaded the graphs may fail again, so the restart is delayed.
    const delay_ms = host.ready ? 0 : RESTART_DELAY_MS;
    if (!host.isolated && !host.retiring) setTimeout(() => this.#fill(), delay_ms).unref();
    const runs = [...host.runs.values()];
    // A run that had not started is not the cause, unless the graphs cannot be loaded.
    const isSuspect = ({ started }: { started?: boolean }) => started || !host.ready;
    const unstarted = runs.filter((run) => !isSuspect(run));
    if (unstarted.length > 0) this.#listener.onEvicted(unstarted);
    this.#listener.onHostLost(runs.filter(isSuspect), reason);
    this.#listener.onCapacity();
  }

  /** Replaces a host, because only its end stops the code of a run that has ended. Its other runs continue in another host. */
  #retire(host: PooledHost, run_id: string): void {
    this.#options.log.warn({ run_id }, "code of a stopped run is still executing; replacing its graph host");
    host.retiring = true;
    this.#fill();
    if (host.runs.size === 0) {
      this.#end(host);
      return;
    }
    for (const { run_id, epoch } of host.runs.values()) host.send({ type: "drain", run_id, epoch });
    setTimeout(() => {
      if (!this.#hosts.has(host)) return;
      this.#end(host);
      this.#listener.onEvicted([...host.runs.values()]);
    }, this.#options.retirement_ms).unref();
  }

  #end(host: PooledHost): void {
    this.#hosts.delete(host);
    void host.host.terminate();
  }

  async #ping(): Promise<void> {
    // If this thread was blocked, timers run before the messages of the hosts are handled. Evicting runs whose start message is waiting
    // would execute them twice.
    await setImmediate();
    if (this.#stopped) return;
    const now = performance.now();
    for (const host of this.#hosts) {
      if (host.pinged_at === undefined) {
        host.pinged_at = now;
        host.send({ type: "ping", id: ++this.#pings });
      } else if (now - host.pinged_at > this.#timeoutOf(host)) {
        this.#end(host);
        this.#handleExit(host, `no response for ${this.#timeoutOf(host)} ms`);
      } else if (host.isUnresponsive(now, this.#options.silent_ms)) {
        this.#evictQueuedRuns(host);
      }
    }
  }

  #timeoutOf({ ready }: PooledHost): number {
    return ready ? this.#options.dead_ms : Math.max(this.#options.dead_ms, LOAD_TIMEOUT_MS);
  }

  /** Evicts a hanging host's runs that have not started, and starts an additional host if one is needed. */
  #evictQueuedRuns(host: PooledHost): void {
    const queued = [...host.runs.values()].filter((run) => !run.started);
    for (const run of queued) {
      host.runs.delete(run.run_id);
      host.send({ type: "abort", run_id: run.run_id, epoch: run.epoch, reason: "lease_lost" });
    }
    const shared = [...this.#hosts].filter((other) => !other.isolated && !other.retiring).length;
    if (!host.isolated && this.#available().length < this.#options.size && shared < this.#options.size + MAX_ADDITIONAL)
      this.#add(false);
    if (queued.length > 0) this.#listener.onEvicted(queued);
    this.#listener.onCapacity();
  }

  /** Ends an additional host when an unresponsive one responds again. */
  #endAdditional(host: PooledHost): void {
    if (host.isolated || host.retiring || this.#available().length <= this.#options.size) return;
    const idle = this.#available().find((other) => other !== host && other.runs.size === 0 && other.ready);
    if (idle) this.#end(idle);
  }
}
