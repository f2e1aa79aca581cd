import { type Database, sealedOf } from "../../platform/database/database.ts";
import { type BackgroundService, MAX_STOP_MS, periodicService } from "../../platform/lib/background-service.ts";
import type { Log } from "../../platform/lib/log.ts";
import { Semaphore } from "../../platform/lib/semaphore.ts";
import { withTimeout } from "../../platform/lib/signal.ts";
import type { StateSummary } from "../graph-hosts/host.ts";
import { lastEventSeq } from "../storage/events.ts";
import {
  findHeld,
  findLostRuns,
  type HeldRun,
  type Lost,
  lockLostRuns,
  renewLeases,
  returnLostRuns,
} from "../storage/run-leases.ts";
import type { RunRow } from "../storage/schema.ts";
import type { Executor } from "./execution/executor.ts";
import { runFields } from "./run-log.ts";
import { type SettleContext, settle } from "./settlement/settle.ts";
import { openRun, settleUnencrypted } from "./settlement/unencrypted.ts";
import { MAX_ATTEMPTS, verdictOn } from "./settlement/verdict.ts";

export interface HeartbeatOptions {
  database: Database;
  log: Log;
  lease_ms: number;
  heartbeat_ms: number;
}

/** Renews the leases of a worker's runs, and stops runs whose lease is lost or whose cancel was requested. */
export class Heartbeat {
  readonly service: BackgroundService;
  readonly #options: HeartbeatOptions;
  readonly #running: ReadonlyMap<string, Executor>;
  /** The renewal of locked runs that is in progress. */
  #renewing: Promise<unknown> | undefined;

  constructor(options: HeartbeatOptions, running: ReadonlyMap<string, Executor>) {
    this.#options = options;
    this.#running = running;
    this.service = periodicService(
      options.heartbeat_ms,
      () => this.#beat(),
      (error) => {
        options.log.error({ error }, "heartbeat failed");
        this.#stopIfExpired();
      },
    );
  }

  /** Other processes claim the runs once the leases have expired, so the runs must stop here. */
  #stopIfExpired(): void {
    const expired_before = performance.now() - this.#options.lease_ms;
    for (const executor of this.#running.values())
      if (executor.held_at < expired_before) void executor.stop("lease_lost");
  }

  /** Renews the leases. Stops runs that this worker no longer holds, and runs with a requested cancel. */
  async #beat(): Promise<void> {
    if (this.#running.size === 0) return;
    const { database, lease_ms } = this.#options;
    const before = [...this.#running.values()];
    const run_ids = [...this.#running.keys()];
    const now = performance.now();
    const { worker_id } = database;
    const held = await database.writeNow((tx) => renewLeases(tx, { worker_id, lease_ms, run_ids, waits: false }));
    if (held.length < run_ids.length) held.push(...(await this.#renewLocked(run_ids, held)));
    const byId = new Map(held.map((row) => [row.run_id, row]));
    for (const executor of before) {
      const row = byId.get(executor.run.run_id);
      if (row?.epoch !== executor.run.epoch) {
        if (this.#running.get(executor.run.run_id) === executor) void executor.stop("lease_lost");
      } else {
        executor.held_at = now;
        if (row.cancel_action !== null) void executor.stop("cancelled");
      }
    }
  }

  /** Returns the runs whose rows are locked by a long write. Their leases are renewed after the write, without delaying other runs. */
  async #renewLocked(run_ids: readonly string[], renewed: readonly HeldRun[]): Promise<HeldRun[]> {
    const { database, lease_ms, log } = this.#options;
    const { worker_id } = database;
    const done = new Set(renewed.map(({ run_id }) => run_id));
    const left = run_ids.filter((run_id) => !done.has(run_id));
    const locked = await database.writeNow((tx) => findHeld(tx, { worker_id, run_ids: left }));
    if (locked.length > 0 && !this.#renewing)
      this.#renewing = database
        .write((tx) => renewLeases(tx, { worker_id, lease_ms, run_ids: left, waits: true }))
        .catch((error) =>
          log.warn({ error, run_ids: left }, "failed to renew the leases of runs whose rows were locked"),
        )
        .finally(() => {
          this.#renewing = undefined;
        });
    return locked;
  }
}

interface RescueOptions extends HeartbeatOptions, SettleContext {
  /** Set in instances of a deployment: they rescue runs only while their rollout is active. */
  rollout: number | undefined;
  readState(run: RunRow): Promise<StateSummary | undefined>;
}

const INTERVAL_MS = 500;
/** Maximum number of lost runs per transaction. */
const BATCH = 100;

/** Reading the state of a run can take 30 s, if the code of the graph hangs. */
const MAX_ENDING = 8;

/** Returns a run to the queue if its worker is lost. Ends it instead if a cancel is pending or no attempts remain. */
export class Rescue {
  readonly #options: RescueOptions;
  /** The runs that this process is ending. They stay lost until then. */
  readonly #ending = new Map<string, Promise<void>>();
  readonly #slots = new Semaphore(MAX_ENDING);
  readonly #stopping = new AbortController();

  constructor(options: RescueOptions) {
    this.#options = options;
  }

  service(): BackgroundService {
    const sweeps = periodicService(
      INTERVAL_MS,
      () => this.rescueLost(),
      (error) => this.#options.log.error({ error }, "rescue failed"),
    );
    return {
      start: sweeps.start,
      stop: async () => {
        this.#stopping.abort();
        await sweeps.stop();
        await withTimeout(Promise.all(this.#ending.values()), MAX_STOP_MS);
      },
    };
  }

  /** @returns whether there may be more lost runs */
  async rescueLost(): Promise<boolean> {
    const { database, lease_ms, heartbeat_ms, rollout } = this.#options;
    // A process that lost its connection can reconnect and renew its leases, so it counts as dead only after a missed heartbeat.
    const lost = (): Lost => ({
      lease_ms,
      missed_ms: heartbeat_ms * 1.5,
      limit: BATCH,
      except: [...this.#ending.keys()],
      rollout,
    });
    const found = await findLostRuns(database.read, lost());
    if (found.length === 0) return false;
    const rescued = await this.#rescue(lost());
    if (rescued.length === found.length) return found.length === BATCH;
    // The remaining runs are locked by a short write, or by a process that hangs in a transaction.
    const done = new Set(rescued);
    const locked = found.filter(({ run_id }) => !done.has(run_id));
    const workers = locked.map(({ worker_id }) => worker_id as number).filter((id) => id !== database.worker_id);
    await database.freeLocks([...new Set(workers)]);
    return (await this.#rescue(lost())).length === BATCH;
  }

  async #rescue(lost: Lost): Promise<string[]> {
    const { database, log } = this.#options;
    const runs = await sealedOf(database).write(async (tx) => {
      const locked = await lockLostRuns(tx, lost);
      const returned = locked.filter((run) => this.#mayContinue(run)).map(({ run_id }) => run_id);
      if (returned.length > 0) await returnLostRuns(tx, returned);
      return locked;
    });
    // Logged as a warning, because a lost worker is a fault even if its runs continue.
    for (const run of runs) log.warn({ ...runFields(run), attempt: run.attempt }, "run rescued");
    if (runs.length > 0) database.hints.emit({ kind: "runs" });
    for (const run of runs) if (!this.#mayContinue(run)) this.#ending.set(run.run_id, this.#endLater(run));
    return runs.map(({ run_id }) => run_id);
  }

  /** Does not delay the rescue of other runs. */
  #endLater(run: RunRow): Promise<void> {
    const { log } = this.#options;
    const end = () =>
      this.#end(run).catch((error) =>
        settleUnencrypted(this.#options, run, error, run.cancel_action === null ? undefined : "cancelled"),
      );
    return this.#slots
      .use(this.#stopping.signal, end)
      .catch((error) =>
        log.error(
          { error, run_id: run.run_id },
          "failed to end a run whose process exited or stopped renewing its lease",
        ),
      )
      .finally(() => this.#ending.delete(run.run_id));
  }

  #mayContinue({ cancel_action, attempt }: RunRow): boolean {
    return cancel_action === null && attempt < MAX_ATTEMPTS;
  }

  async #end(run: RunRow): Promise<void> {
    const { readState } = this.#options;
    const scoped = this.#options.database.encryption?.scoped();
    if (scoped) await openRun(scoped, run);
    const database = scoped ?? this.#options.database;
    const message = `The process that was executing the run exited or stopped responding during the last allowed attempt (attempt ${run.attempt}).`;
    const error = run.cancel_action === null ? { error: "TooManyAttempts", message } : undefined;
    const state = run.cancel_action === "rollback" ? undefined : await readState(run);
    const ended = error ? "error" : "aborted";
    const verdict = verdictOn({ ended, output: state?.values ?? "null", state, error }, undefined);
    const seq = (await lastEventSeq(database.read, run.run_id)) + 1;
    const last = verdict.event ? [{ seq, event: verdict.event[0], data: verdict.event[1] }] : [];
    await settle(
      { ...this.#options, database },
      {
        run,
        ...verdict,
        cancelled: run.cancel_action !== null,
        state,
        error: verdict.event?.[1] ?? null,
        unwritten: { events: last, steps: [] },
      },
    );
  }
}
