import { setTimeout as sleep } from "node:timers/promises";
import { sealedOf, type Tx } from "../../platform/database/database.ts";
import { hideDriverMessage, isUnavailable, toHostError } from "../../platform/database/database-errors.ts";
import { type BackgroundService, periodicService } from "../../platform/lib/background-service.ts";
import { Signal } from "../../platform/lib/signal.ts";
import type { FromHost, RunEpoch, RunOrder } from "../graph-hosts/host.ts";
import type { Capacity } from "../graph-hosts/language-hosts.ts";
import type { PooledHost, PoolListener } from "../graph-hosts/pool.ts";
import { claimRuns, mayClaim, msUntilNextRun, nextQueuedWorkspace } from "../storage/claims/claims.ts";
import { type ClaimRules, claimInTurns, FIRST_TURN } from "../storage/claims/claims-in-turns.ts";
import { insertEvents } from "../storage/events.ts";
import type { RunRow } from "../storage/schema.ts";
import { Executor, type ExecutorOptions } from "./execution/executor.ts";
import { readCheckpoints } from "./execution/host-requests.ts";
import { metadataEvent } from "./execution/resume-point.ts";
import { Heartbeat, type HeartbeatOptions } from "./run-leases.ts";
import { runFields } from "./run-log.ts";

export interface WorkerOptions extends Omit<ExecutorOptions, "onDone">, HeartbeatOptions {
  /** Interval at which the queue is polled, in case a hint is lost. */
  idle_poll_ms: number;
  /** Set in instances of a deployment: they execute runs only while their rollout is active. */
  rollout: number | undefined;
  claim_rules: ClaimRules | undefined;
}

const HAND_BACK_TIMEOUT_MS = 5_000;

/** setTimeout fires immediately for longer delays. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Claims and executes runs while hosts have free slots. A run that this process accepts is claimed in the same turn of the event loop. */
export class Worker implements BackgroundService, PoolListener {
  readonly #options: WorkerOptions;
  readonly #running = new Map<string, Executor>();
  /** The workspace that was last preferred while another workspace used half of the slots. */
  #last_preferred = "";
  /** With claim rules: where the last claim ended. */
  #turn = FIRST_TURN;
  readonly #heartbeat: BackgroundService;
  readonly #polling: BackgroundService;
  #state: "created" | "idle" | "scheduled" | "claiming" | "stopped" = "created";
  /** The request for the next claim. "check" reads the queue before the claim. */
  #request: "none" | "check" | "claim" = "none";
  readonly #idle = new Signal();
  readonly #unlisten: (() => void)[] = [];

  constructor(options: WorkerOptions) {
    this.#options = options;
    const { idle_poll_ms, log } = options;
    this.#heartbeat = new Heartbeat(options, this.#running).service;
    this.#polling = periodicService(
      idle_poll_ms,
      () => this.#poll(),
      (error) => log.error({ error }, "polling for runs failed"),
    );
  }

  start(): void {
    if (this.#state === "stopped") return;
    this.#state = "idle";
    const { hints } = this.#options.database;
    this.#unlisten.push(
      hints.listen("runs", ({ in_ms, isNew }) => (in_ms ? this.#wakeIn(in_ms) : this.wake(isNew))),
      hints.listen("cancel", ({ run_id }) => void this.#running.get(run_id)?.stop("cancelled")),
    );
    this.#heartbeat.start();
    this.#polling.start();
    this.wake();
  }

  /**
   * Stops claiming and waits up to `grace_ms` for the runs to end. Then stops the rest at their next step and hands them back. Runs that
   * do not reach a step within another grace period (at least 1 s) are handed back, too: their current step runs again in another
   * process, and the fence refuses its writes here.
   */
  async drain(grace_ms: number): Promise<void> {
    this.#state = "stopped";
    await this.#idleWithin(grace_ms);
    for (const executor of this.#running.values()) executor.drain();
    await this.#idleWithin(Math.max(grace_ms, 1_000));
    // While the database is unavailable, runs cannot be handed back; their leases expire instead.
    const handedBack = Promise.all([...this.#running.values()].map((executor) => executor.handBack()));
    await Promise.race([handedBack, sleep(HAND_BACK_TIMEOUT_MS, undefined, { ref: false })]);
  }

  async stop(): Promise<void> {
    this.#state = "stopped";
    await this.#polling.stop();
    for (const unlisten of this.#unlisten) unlisten();
    await this.#heartbeat.stop();
  }

  /**
   * Requests a claim, after any event that may have made a run claimable.
   *
   * @param isCertain true if a claimable run exists, perhaps uncommitted: the claim starts at once and joins its commit. Otherwise the
   *   claim reads the queue first, because most requests find no run.
   */
  wake(isCertain = false): void {
    if (isCertain) this.#request = "claim";
    else if (this.#request === "none") this.#request = "check";
    if (this.#state === "created" || this.#state === "claiming" || this.#state === "stopped") return;
    if (isCertain) void this.#claimAll();
    else if (this.#state === "idle") this.#schedule();
  }

  /** Claims in the next turn, because the end of a run calls {@link wake} three times in one turn: one claim serves them all. */
  #schedule(): void {
    this.#state = "scheduled";
    setImmediate(() => {
      if (this.#state === "scheduled") void this.#claimAll();
    });
  }

  async #claimAll(): Promise<void> {
    this.#state = "claiming";
    try {
      while ((await this.#claim()) && this.#request !== "none" && this.#state === "claiming");
    } catch (error) {
      this.#options.log.error({ error }, "claiming runs failed");
    }
    if (this.#state === "claiming") this.#state = "idle";
  }

  /** @returns false if no host has a free slot; `#request` is kept for the next attempt */
  async #claim(): Promise<boolean> {
    const { database, pool, rollout, log, metrics } = this.#options;
    const capacities = pool.capacities();
    if (capacities.length === 0) return false;
    const request = this.#request;
    const held_at = performance.now();
    this.#request = "none";
    if (request !== "claim" && !(await mayClaim(database.read, rollout))) return true;
    // One run whose values cannot be decrypted must not stop the others. Its executor decrypts it.
    const runs = await sealedOf(database)
      .write(async (tx) => {
        const claimed: RunRow[] = [];
        for (const capacity of capacities) claimed.push(...(await this.#claimFairly(tx, capacity)));
        // The first event of a run shares the commit of its first claim. Later claims must read the last event number first.
        for (const run of claimed) if (run.epoch === 1) await insertEvents(tx, run, [metadataEvent(run, 1)]);
        return claimed;
      })
      .catch((error) => {
        // Another process claimed a run of the same thread at the same time.
        if (database.read.dialect.isUniqueViolation(error)) return [];
        throw error;
      });
    for (const run of runs) {
      log.info({ ...runFields(run), attempt: run.attempt }, "run claimed");
      metrics.onClaim(run);
      database.hints.emit({ kind: "thread", thread_id: run.thread_id });
      const earlier = this.#running.get(run.run_id);
      const executor = new Executor(run, held_at, { ...this.#options, onDone: (done) => this.#done(done) });
      this.#running.set(run.run_id, executor);
      // This process lost the run and claimed it again, so the previous execution must stop first.
      void executor.start(earlier?.stop("lease_lost"));
    }
    const limit = capacities.reduce((sum, capacity) => sum + capacity.limit, 0);
    if (runs.length === limit && this.#request === "none") this.#request = "check";
    return true;
  }

  /**
   * Claims in the order of the queue. While one workspace holds at least half of this process's slots, the other workspaces are
   * preferred in turn, so that their runs wait for one free slot and not for the whole queue of that workspace.
   */
  async #claimFairly(tx: Tx, { limit, graphs }: Capacity): Promise<RunRow[]> {
    const { database, lease_ms, rollout, claim_rules: rules } = this.#options;
    const claim = { worker_id: database.worker_id, lease_ms, rollout, graphs };
    if (rules) {
      const { runs, turn } = await claimInTurns(tx, { ...claim, limit, rules, turn: this.#turn });
      this.#turn = turn;
      return runs;
    }
    const dominant = this.#dominantWorkspace(limit);
    const tenant_id = dominant && (await nextQueuedWorkspace(tx, { after: this.#last_preferred, except: dominant }));
    if (!tenant_id) return claimRuns(tx, { ...claim, limit });
    this.#last_preferred = tenant_id;
    const first = await claimRuns(tx, { ...claim, limit, tenant_id });
    if (first.length === limit) return first;
    return [...first, ...(await claimRuns(tx, { ...claim, limit: limit - first.length }))];
  }

  /** Finds runs whose hints were lost, and schedules a claim if a delayed run is due before the next poll. */
  async #poll(): Promise<void> {
    this.wake();
    const next = await msUntilNextRun(this.#options.database.read);
    if (next !== undefined && next < this.#options.idle_poll_ms) this.#wakeIn(next);
  }

  #wakeIn(ms: number): void {
    // A later poll finds runs whose delay exceeds the maximum delay of a timer (24 days).
    if (ms > MAX_TIMER_MS) return;
    setTimeout(() => this.wake(), ms).unref();
  }

  #done(executor: Executor): void {
    const { run_id } = executor.run;
    // The entry of a run that was claimed again belongs to its next executor.
    if (this.#running.get(run_id) === executor) this.#running.delete(run_id);
    if (this.#running.size === 0) this.#idle.notify();
    this.wake();
  }

  #dominantWorkspace(free: number): string | undefined {
    const half = (this.#running.size + free) / 2;
    const held = new Map<string, number>();
    for (const { run } of this.#running.values()) {
      const count = (held.get(run.tenant_id) ?? 0) + 1;
      if (count >= half) return run.tenant_id;
      held.set(run.tenant_id, count);
    }
    return undefined;
  }

  async #idleWithin(ms: number): Promise<void> {
    if (this.#running.size === 0) return;
    this.#idle.reset();
    await this.#idle.wait(ms);
  }

  onMessage(message: FromHost, host: PooledHost): void {
    switch (message.type) {
      case "events":
        this.#executorOf(message)?.onEvents(message.events);
        break;
      case "store":
        this.#executorOf(message)?.requests.store(message.write);
        break;
      case "request":
        void this.#answer(message, host);
        break;
      case "log": {
        const executor = message.run && this.#executorOf(message.run);
        if (executor) executor.onLog(message);
        else this.#options.log[message.level](JSON.parse(message.fields), message.message);
        break;
      }
      case "trace":
        this.#options.traces?.onMessage(message);
        break;
      case "done": {
        const executor = this.#executorOf(message);
        if (executor) void executor.onDone(message.outcome, host);
        else this.#options.pool.release(message, host);
      }
    }
  }

  #executorOf({ run_id, epoch }: RunEpoch): Executor | undefined {
    const executor = this.#running.get(run_id);
    return executor?.run.epoch === epoch ? executor : undefined;
  }

  async #answer({ id, run, request }: Extract<FromHost, { type: "request" }>, host: PooledHost): Promise<void> {
    const executor = run && this.#executorOf(run);
    try {
      if (run && !executor)
        throw new Error(
          "This process no longer executes the run: the run has ended, or another process has taken it over.",
        );
      // Some of LangGraph's reads contain no run id. Reads require no lease.
      const value = executor ? executor.requests.answer(request) : readCheckpoints(this.#options.database, request);
      host.send({ type: "reply", id, value: await value });
    } catch (error) {
      if (executor && isUnavailable(error)) executor.onReadFailure(error);
      host.send({ type: "reply", id, error: toHostError(hideDriverMessage(error)) });
    }
  }

  onHostLost(runs: RunOrder[], reason: string): void {
    for (const run of runs) void this.#executorOf(run)?.onHostLost(reason);
  }

  onEvicted(runs: RunOrder[]): void {
    for (const run of runs) void this.#executorOf(run)?.handBack();
  }

  onCapacity(): void {
    this.wake();
  }
}
