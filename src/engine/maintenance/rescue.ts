import type { StateSummary } from "../../graphs/host.ts";
import type { Log } from "../../lib/log.ts";
import { repeating, type Service } from "../../lib/service.ts";
import type { Database } from "../../storage/database.ts";
import { lastEventSeq } from "../../storage/events.ts";
import { findLostRuns, returnRunIfHeld } from "../../storage/run-leases.ts";
import type { RunRow } from "../../storage/schema.ts";
import type { EventLog } from "../event-log.ts";
import { MOST_ATTEMPTS, verdictOn } from "../run-endings.ts";
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
    const lost = await database.write((tx) =>
      findLostRuns(tx, { lease_ms, missed_ms: heartbeat_ms * 1.5, limit: BATCH, rollout }),
    );
    for (const run of lost) await this.#rescue(run);
    return lost.length === BATCH;
  }

  async #rescue(run: RunRow): Promise<void> {
    const { database, log } = this.#options;
    log.warn({ run_id: run.run_id, attempt: run.attempt }, "a run had lost its worker");
    if (run.cancel_action !== null) return this.#end(run, undefined);
    if (run.attempt >= MOST_ATTEMPTS) {
      return this.#end(run, {
        error: "TooManyAttempts",
        message: `The run was lost ${run.attempt} times with the process that executed it.`,
      });
    }
    await database.write((tx) => returnRunIfHeld(tx, { ...run, spent: 1, crashed: 0, delay_ms: 0 }));
    database.hints.emit({ kind: "runs" });
  }

  async #end(run: RunRow, error: { error: string; message: string } | undefined): Promise<void> {
    const { database, events, readState } = this.#options;
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
