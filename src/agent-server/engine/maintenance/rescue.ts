import type { Database } from "../../../platform/database/database.ts";
import type { Log } from "../../../platform/lib/log.ts";
import { repeating, type Service } from "../../../platform/lib/service.ts";
import type { StateSummary } from "../../graph-hosts/host.ts";
import { lastEventSeq } from "../../storage/events.ts";
import { findLostRuns, type Lost, lockLostRuns, returnLostRuns } from "../../storage/lost-runs.ts";
import type { RunRow } from "../../storage/schema.ts";
import type { EventLog } from "../event-log.ts";
import { MAX_ATTEMPTS, verdictOn } from "../run-endings.ts";
import { settle } from "../settle.ts";

export interface RescueOptions {
  database: Database;
  events: EventLog;
  log: Log;
  lease_ms: number;
  heartbeat_ms: number;
  /** Set in instances of a deployment: they rescue runs while their roll-out is the claimant. */
  rollout: number | undefined;
  readState(run: RunRow): Promise<StateSummary | undefined>;
}

/** How often lost runs are looked for. */
const EVERY_MS = 500;
/** Lost runs taken at a time. */
const BATCH = 100;

/** Finds runs whose worker is gone and puts them back into the queue, or ends those that were to be cancelled. */
export class Rescue {
  readonly #options: RescueOptions;

  constructor(options: RescueOptions) {
    this.#options = options;
  }

  service(): Service {
    return repeating(
      EVERY_MS,
      () => this.rescueLost(),
      (error) => this.#options.log.error({ error }, "rescuing runs failed"),
    );
  }

  /** @returns whether there may be more */
  async rescueLost(): Promise<boolean> {
    const { database, lease_ms, heartbeat_ms, rollout } = this.#options;
    // A process whose connection broke but which still renews its leases is alive: it must have missed one, too.
    const lost = { lease_ms, missed_ms: heartbeat_ms * 1.5, limit: BATCH, rollout };
    const found = await findLostRuns(database.read, lost);
    if (found.length === 0) return false;
    const rescued = await this.#rescue(lost);
    if (rescued.length === found.length) return found.length === BATCH;
    // The others are locked: by a write that ends in a moment, or by a process that is frozen.
    const done = new Set(rescued);
    const held = found.filter(({ run_id }) => !done.has(run_id));
    const others = held.map(({ worker_id }) => worker_id as number).filter((id) => id !== database.worker_id);
    await database.freeLocks([...new Set(others)]);
    return (await this.#rescue(lost)).length === BATCH;
  }

  async #rescue(lost: Lost): Promise<string[]> {
    const { database, log } = this.#options;
    const runs = await database.write(async (tx) => {
      const locked = await lockLostRuns(tx, lost);
      const again = locked.filter((run) => this.#mayGoOn(run));
      if (again.length > 0)
        await returnLostRuns(
          tx,
          again.map(({ run_id }) => run_id),
        );
      return locked;
    });
    for (const { run_id, attempt } of runs) log.warn({ run_id, attempt }, "a run had lost its worker");
    if (runs.length > 0) database.hints.emit({ kind: "runs" });
    for (const run of runs.filter((one) => !this.#mayGoOn(one))) {
      await this.#end(run).catch((error) => log.error({ error, run_id: run.run_id }, "a lost run could not be ended"));
    }
    return runs.map(({ run_id }) => run_id);
  }

  #mayGoOn({ cancel_action, attempt }: RunRow): boolean {
    return cancel_action === null && attempt < MAX_ATTEMPTS;
  }

  /** A run that was to be cancelled, or was lost too often. */
  async #end(run: RunRow): Promise<void> {
    const { database, events, readState } = this.#options;
    const message = `The run was lost ${run.attempt} times with the process that executed it.`;
    const error = run.cancel_action === null ? { error: "TooManyAttempts", message } : undefined;
    const state = run.cancel_action === "rollback" ? undefined : await readState(run);
    const ended = error ? "error" : "aborted";
    const verdict = verdictOn({ ended, output: state?.values ?? "null", state, error }, undefined);
    const seq = (await lastEventSeq(database.read, run.run_id)) + 1;
    const last = verdict.event ? [{ seq, event: verdict.event[0], data: verdict.event[1] }] : [];
    await settle(database, events, {
      run,
      ...verdict,
      cancelled: run.cancel_action !== null,
      state,
      error: verdict.event?.[1] ?? null,
      unwritten: { events: last, steps: [] },
    });
  }
}
