import { setImmediate } from "node:timers/promises";
import type { Log } from "../../platform/lib/log.ts";
import { repeating, type Service } from "../../platform/lib/service.ts";
import type { FromHost, GraphHost, HostSetup, RunOrder, StartHost, ToHost } from "./host.ts";

export interface PoolOptions {
  startHost: StartHost;
  /** Read at each start of a host, so that a reload sees the graphs of now. */
  setup: () => HostSetup;
  size: number;
  jobs_per_host: number;
  /** A host that has not answered for this long gets no new runs, and another is started beside it. */
  silent_ms: number;
  /** ... and for this long is ended; see also {@link LOAD_MS}. */
  dead_ms: number;
  log: Log;
}

/** What the pool reports to whoever gave it runs. */
export interface PoolListener {
  onMessage(message: FromHost, host: PooledHost): void;
  /** The host died with these runs in it, which may be why. */
  onHostLost(runs: RunOrder[], reason: string): void;
  /** These runs have not started in their host, which hangs or is gone. */
  onStuck(runs: RunOrder[]): void;
  /** There may be room again. */
  onRoom(): void;
}

/** More hosts than this are not started beside silent ones: each costs some 60 MB. */
const MAX_EXTRA = 4;

/** Hosts for one suspicious run each, at a time. */
const MAX_ALONE = 2;

const PING_MS = 250;

/**
 * A host that imports the graphs answers between two imports, and may take this long for one: on a busy machine it has taken more than a
 * minute, for hosts with nothing wrong in them.
 */
const LOAD_MS = 180_000;

/** After a host died while it loaded the graphs, the next is started after this. */
const RELOAD_PAUSE_MS = 1_000;

/** One host of the pool. */
export class PooledHost {
  readonly runs = new Map<string, RunOrder & { started?: boolean }>();
  /** Graph id -> reason, once the graphs are loaded. */
  readonly loaded = Promise.withResolvers<Record<string, string>>();
  /** For one run only, because that run has brought down a host before. */
  readonly alone: boolean;
  host!: GraphHost;
  /** Since when a ping waits for its answer; undefined when none does. */
  asked_at: number | undefined;
  /** No new runs; ends with its last one. */
  retiring = false;
  ready = false;

  constructor(alone: boolean) {
    this.alone = alone;
    // Somebody may be interested in the failure, nobody has to be.
    this.loaded.promise.catch(() => undefined);
  }

  send(message: ToHost): void {
    this.host.send(message);
  }

  isSilent(now: number, silent_ms: number): boolean {
    return this.ready && this.asked_at !== undefined && now - this.asked_at > silent_ms;
  }
}

/**
 * The graph hosts that execute runs: hands runs to those that answer, starts others beside those that do not,
 * and ends those that have hung for too long.
 */
export class HostPool implements Service {
  readonly #options: PoolOptions;
  readonly #listener: PoolListener;
  readonly #hosts = new Set<PooledHost>();
  readonly #pinging: Service;
  readonly #warned = new Set<string>();
  #pings = 0;
  #stopped = false;

  constructor(options: PoolOptions, listener: PoolListener) {
    this.#options = options;
    this.#listener = listener;
    this.#pinging = repeating(
      PING_MS,
      async () => this.#ping(),
      (error) => options.log.error({ error }, "pinging graph hosts failed"),
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

  /** The load failures of the first host, by graph; rejects when the host did not get so far. */
  get loaded(): Promise<Record<string, string>> {
    const [first] = this.#hosts;
    return first ? first.loaded.promise : Promise.resolve({});
  }

  /** How many more runs the hosts that answer can take. */
  room(): number {
    return this.#serving().reduce((sum, host) => sum + Math.max(0, this.#options.jobs_per_host - host.runs.size), 0);
  }

  /** Keeps a place for a run in the host with the fewest. Undefined when there is none right now. */
  reserve(order: RunOrder, { alone }: { alone: boolean }): PooledHost | undefined {
    const host = alone ? this.#addAlone() : this.#leastLoaded();
    host?.runs.set(order.run_id, order);
    return host;
  }

  /** Passes a message to the host that has the run. */
  sendToRun(run_id: string, message: ToHost): void {
    for (const host of this.#hosts) if (host.runs.has(run_id)) host.send(message);
  }

  /** The run is over as far as the service is concerned; a node that ignores its abort may go on in the host. */
  release({ run_id, epoch }: Pick<RunOrder, "run_id" | "epoch">, host: PooledHost): void {
    // The run may be in the host again, of a later claim, whose place this is.
    if (host.runs.get(run_id)?.epoch === epoch) host.runs.delete(run_id);
    if (host.runs.size === 0 && (host.retiring || host.alone)) this.#end(host);
    this.#listener.onRoom();
  }

  /** Replaces all hosts by fresh ones that load the graphs anew; running runs end where they are. */
  reload(): Promise<Record<string, string>> {
    const old = [...this.#hosts];
    for (const host of old) host.retiring = true;
    const fresh = this.#add(false);
    this.#fill();
    for (const host of old) if (host.runs.size === 0) this.#end(host);
    return fresh.loaded.promise;
  }

  /** All hosts load the same graphs: each warning is logged once. */
  #warn(warnings: readonly string[]): void {
    for (const warning of warnings) if (!this.#warned.has(warning)) this.#options.log.warn(warning);
    for (const warning of warnings) this.#warned.add(warning);
  }

  #serving(): PooledHost[] {
    const now = performance.now();
    return [...this.#hosts].filter(
      (host) => !host.retiring && !host.alone && !host.isSilent(now, this.#options.silent_ms),
    );
  }

  #leastLoaded(): PooledHost | undefined {
    const free = this.#serving().filter((host) => host.runs.size < this.#options.jobs_per_host);
    return free.toSorted((a, b) => a.runs.size - b.runs.size)[0];
  }

  /** As many hosts that answer as there should be. */
  #fill(): void {
    if (this.#stopped) return;
    while (this.#serving().length < this.#options.size) this.#add(false);
    this.#listener.onRoom();
  }

  #addAlone(): PooledHost | undefined {
    const busy = [...this.#hosts].filter((host) => host.alone).length;
    return busy < MAX_ALONE ? this.#add(true) : undefined;
  }

  #add(alone: boolean): PooledHost {
    const pooled = new PooledHost(alone);
    pooled.host = this.#options.startHost(this.#options.setup(), {
      onMessage: (message) => this.#receive(pooled, message),
      onExit: (reason) => this.#lose(pooled, reason),
    });
    this.#hosts.add(pooled);
    return pooled;
  }

  #receive(host: PooledHost, message: FromHost): void {
    if (message.type === "pong") {
      host.asked_at = undefined;
      this.#retireExtra(host);
    } else if (message.type === "loaded") {
      host.ready = true;
      host.loaded.resolve(message.failures);
      this.#warn(message.warnings);
      this.#listener.onRoom();
    } else {
      if (message.type === "started") {
        const run = host.runs.get(message.run_id);
        if (run) run.started = true;
      }
      this.#listener.onMessage(message, host);
    }
  }

  #lose(host: PooledHost, reason: string): void {
    host.loaded.reject(new Error(`The graph host ended while it loaded the graphs: ${reason}.`));
    this.#hosts.delete(host);
    if (this.#stopped) return;
    this.#options.log.error({ reason, runs: [...host.runs.keys()] }, "a graph host died");
    // One that died while it loaded the graphs may do so again and again: not at full speed.
    const pause_ms = host.ready ? 0 : RELOAD_PAUSE_MS;
    if (!host.alone && !host.retiring) setTimeout(() => this.#fill(), pause_ms).unref();
    const runs = [...host.runs.values()];
    // What had not begun has no part in it, unless it is the graphs that cannot be loaded.
    const isSuspect = ({ started }: { started?: boolean }) => started || !host.ready;
    const innocent = runs.filter((run) => !isSuspect(run));
    if (innocent.length > 0) this.#listener.onStuck(innocent);
    this.#listener.onHostLost(runs.filter(isSuspect), reason);
    this.#listener.onRoom();
  }

  #end(host: PooledHost): void {
    this.#hosts.delete(host);
    void host.host.terminate();
  }

  async #ping(): Promise<void> {
    // When this thread stood still, timers come before what the hosts have said meanwhile: that they live, and which runs have begun. To
    // pass them by would execute those twice at once.
    await setImmediate();
    if (this.#stopped) return;
    const now = performance.now();
    for (const host of this.#hosts) {
      if (host.asked_at === undefined) {
        host.asked_at = now;
        host.send({ type: "ping", id: ++this.#pings });
      } else if (now - host.asked_at > this.#deadline(host)) {
        this.#end(host);
        this.#lose(host, `it has not answered for ${this.#deadline(host)} ms`);
      } else if (host.isSilent(now, this.#options.silent_ms)) {
        this.#passBy(host);
      }
    }
  }

  #deadline({ ready }: PooledHost): number {
    return ready ? this.#options.dead_ms : Math.max(this.#options.dead_ms, LOAD_MS);
  }

  /** A host hangs: what has not started in it goes elsewhere. */
  #passBy(host: PooledHost): void {
    const waiting = [...host.runs.values()].filter((run) => !run.started);
    for (const run of waiting) {
      host.runs.delete(run.run_id);
      host.send({ type: "abort", run_id: run.run_id, epoch: run.epoch, reason: "lease_lost" });
    }
    const regular = [...this.#hosts].filter((other) => !other.alone && !other.retiring).length;
    if (!host.alone && this.#serving().length < this.#options.size && regular < this.#options.size + MAX_EXTRA)
      this.#add(false);
    if (waiting.length > 0) this.#listener.onStuck(waiting);
    this.#listener.onRoom();
  }

  /** A host that answers again makes the one that was started beside it superfluous. */
  #retireExtra(host: PooledHost): void {
    if (host.alone || host.retiring || this.#serving().length <= this.#options.size) return;
    const idle = this.#serving().find((other) => other !== host && other.runs.size === 0 && other.ready);
    if (idle) this.#end(idle);
  }
}
