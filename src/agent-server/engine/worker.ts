import { setTimeout as sleep } from "node:timers/promises";
import type { Database, Tx } from "../../platform/database/database.ts";
import type { Log } from "../../platform/lib/log.ts";
import { repeating, type Service } from "../../platform/lib/service.ts";
import { forHost, isUnavailable, withoutDriverText } from "../../platform/lib/unavailable.ts";
import type { FromHost, RunOrder } from "../graph-hosts/host.ts";
import type { PooledHost, PoolListener } from "../graph-hosts/pool.ts";
import { insertEvents } from "../storage/events.ts";
import { claimRuns, mayClaim, msUntilNextRun, nextWaitingWorkspace } from "../storage/run-leases.ts";
import type { RunRow } from "../storage/schema.ts";
import { readCheckpoints } from "./checkpoint-reads.ts";
import { Executor, type ExecutorOptions } from "./executor.ts";
import { Heartbeat } from "./heartbeat.ts";
import { metadataEvent } from "./run-start.ts";

export interface WorkerOptions extends Omit<ExecutorOptions, "onDone"> {
  database: Database;
  log: Log;
  lease_ms: number;
  heartbeat_ms: number;
  /** Without any hint the queue is looked at this often. */
  idle_poll_ms: number;
  /** Set in instances of a deployment: they execute runs while their roll-out is the claimant. */
  rollout: number | undefined;
}

const MAX_HAND_BACK_MS = 5_000;

/** setTimeout fires at once when it is given more. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Claims runs while its hosts have room and sees each of them through. It is woken by hints: a run that was
 * accepted in this process is claimed in the same turn of the event loop.
 */
export class Worker implements Service, PoolListener {
  readonly #options: WorkerOptions;
  readonly #running = new Map<string, Executor>();
  /** The workspace that was served last while another had half of the places. */
  #served = "";
  readonly #heartbeat: Service;
  readonly #polling: Service;
  #claiming = false;
  #again = false;
  #sure = false;
  #looking = false;
  #stopped = false;
  #idle = Promise.withResolvers<void>();
  readonly #unlisten: (() => void)[] = [];

  constructor(options: WorkerOptions) {
    this.#options = options;
    const { database, idle_poll_ms, log } = options;
    this.#heartbeat = new Heartbeat(options, this.#running).service;
    this.#polling = repeating(
      idle_poll_ms,
      () => this.#poll(),
      (error) => log.error({ error }, "looking for runs failed"),
    );
    this.#unlisten.push(
      database.hints.listen("runs", ({ in_ms, isNew }) => (in_ms ? this.#wakeIn(in_ms) : this.wake(isNew))),
      database.hints.listen("cancel", ({ run_id }) => void this.#running.get(run_id)?.stop("cancelled")),
    );
  }

  start(): void {
    this.#heartbeat.start();
    this.#polling.start();
    this.wake();
  }

  /**
   * Claims nothing more, lets runs end for `grace_ms`, then asks those that are left to stop at their next step
   * and hands them back. Those that do not get there in another such time are handed back all the same: the step
   * they are in runs again elsewhere, and what it still writes here is refused.
   */
  async drain(grace_ms: number): Promise<void> {
    this.#stopped = true;
    await this.#idleWithin(grace_ms);
    for (const executor of this.#running.values()) executor.drain();
    await this.#idleWithin(Math.max(grace_ms, 1_000));
    // Without its database a process cannot hand anything back: the leases cover that.
    const handedBack = Promise.all([...this.#running.values()].map((executor) => executor.giveBack()));
    await Promise.race([handedBack, sleep(MAX_HAND_BACK_MS, undefined, { ref: false })]);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#polling.stop();
    for (const unlisten of this.#unlisten) unlisten();
    await this.#heartbeat.stop();
  }

  /**
   * Looks for work soon. Safe to call as often as you like.
   *
   * @param sure there is work, perhaps not yet committed: then the claim joins that commit. Otherwise a look at the
   *   queue comes first, since most of these calls find nothing.
   */
  wake(sure = false): void {
    if (this.#stopped) return;
    if (sure) this.#sure = true;
    if (this.#claiming) this.#again = true;
    else if (sure) void this.#claimAll();
    else this.#lookSoon();
  }

  /** The end of a run calls for a look three times over: one is enough. */
  #lookSoon(): void {
    if (this.#looking) return;
    this.#looking = true;
    setImmediate(() => {
      this.#looking = false;
      if (this.#claiming) this.#again = true;
      else if (!this.#stopped) void this.#claimAll();
    });
  }

  async #claimAll(): Promise<void> {
    this.#claiming = true;
    try {
      do {
        this.#again = false;
        await this.#claim();
      } while (this.#again && !this.#stopped);
    } catch (error) {
      this.#options.log.error({ error }, "claiming runs failed");
    }
    this.#claiming = false;
  }

  async #claim(): Promise<void> {
    const { database, pool, rollout } = this.#options;
    const limit = pool.room();
    if (limit === 0) return;
    const sure = this.#sure;
    const held_at = performance.now();
    this.#sure = false;
    if (!sure && !(await mayClaim(database.read, rollout))) return;
    const runs = await database
      .write(async (tx) => {
        const claimed = await this.#take(tx, limit);
        // The first event of a run shares the commit of its first claim; later claims must look for their number first.
        for (const run of claimed) if (run.epoch === 1) await insertEvents(tx, run, [metadataEvent(run, 1)]);
        return claimed;
      })
      .catch((error) => {
        // Another process claimed a run of the same thread in the same moment.
        if (database.read.dialect.isUniqueViolation(error)) return [];
        throw error;
      });
    for (const run of runs) {
      database.hints.emit({ kind: "thread", thread_id: run.thread_id });
      const earlier = this.#running.get(run.run_id);
      const executor = new Executor(run, held_at, { ...this.#options, onDone: (done) => this.#done(done) });
      this.#running.set(run.run_id, executor);
      // The run was lost here and has come back: what still executes it is stopped first.
      void executor.start(earlier?.stop("lease_lost"));
    }
    if (runs.length === limit) this.#again = true;
  }

  /**
   * In the order of the queue; but while one workspace has half of the places of this process or more, each of the others in turn
   * goes first, so that a run waits for one place to become free, not for the whole queue of another workspace.
   */
  async #take(tx: Tx, limit: number): Promise<RunRow[]> {
    const { database, lease_ms, rollout } = this.#options;
    const claim = { worker_id: database.worker_id, lease_ms, rollout };
    const crowding = this.#crowding(limit);
    const tenant_id = crowding && (await nextWaitingWorkspace(tx, { after: this.#served, except: crowding }));
    if (!tenant_id) return claimRuns(tx, { ...claim, limit });
    this.#served = tenant_id;
    const first = await claimRuns(tx, { ...claim, limit, tenant_id });
    if (first.length === limit) return first;
    return [...first, ...(await claimRuns(tx, { ...claim, limit: limit - first.length }))];
  }

  /** Looks from time to time, in case a hint was lost, and on the dot when a delayed run is due before the next look. */
  async #poll(): Promise<void> {
    this.wake();
    const next = await msUntilNextRun(this.#options.database.read);
    if (next !== undefined && next < this.#options.idle_poll_ms) this.#wakeIn(next);
  }

  #wakeIn(ms: number): void {
    // Longer delays than a timer can hold (24 days) are found by the polls.
    if (ms > MAX_TIMER_MS) return;
    setTimeout(() => this.wake(), ms).unref();
  }

  #done(executor: Executor): void {
    const { run_id } = executor.run;
    // Of a run that was claimed again the next executor is there.
    if (this.#running.get(run_id) === executor) this.#running.delete(run_id);
    if (this.#running.size === 0) this.#idle.resolve();
    this.wake();
  }

  /** The workspace that has half of the places or more. */
  #crowding(free: number): string | undefined {
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
    this.#idle = Promise.withResolvers();
    const timer = setTimeout(() => this.#idle.resolve(), ms);
    await this.#idle.promise;
    clearTimeout(timer);
  }

  onMessage(message: FromHost, host: PooledHost): void {
    switch (message.type) {
      case "events":
        this.#executorOf(message)?.onEvents(message.events);
        break;
      case "store":
        this.#executorOf(message)?.onStore(message.write);
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
      case "done": {
        const executor = this.#executorOf(message);
        if (executor) void executor.onDone(message.outcome, host);
        else this.#options.pool.release(message, host);
      }
    }
  }

  #executorOf({ run_id, epoch }: { run_id: string; epoch: number }): Executor | undefined {
    const executor = this.#running.get(run_id);
    return executor?.run.epoch === epoch ? executor : undefined;
  }

  async #answer({ id, run, request }: Extract<FromHost, { type: "request" }>, host: PooledHost): Promise<void> {
    const executor = run && this.#executorOf(run);
    try {
      if (run && !executor) throw new Error("The run is no longer executed here.");
      // LangGraph asks some things without saying for which run: reads, which need no right.
      const value = executor ? executor.onRequest(request) : readCheckpoints(this.#options.database, request);
      host.send({ type: "reply", id, value: await value });
    } catch (error) {
      if (executor && isUnavailable(error)) executor.onReadFailure(error);
      host.send({ type: "reply", id, error: forHost(withoutDriverText(error)) });
    }
  }

  onHostLost(runs: RunOrder[], reason: string): void {
    for (const run of runs) void this.#executorOf(run)?.onHostLost(reason);
  }

  onStuck(runs: RunOrder[]): void {
    for (const run of runs) void this.#executorOf(run)?.giveBack();
  }

  onRoom(): void {
    this.wake();
  }
}
