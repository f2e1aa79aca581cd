import type { Database } from "../../platform/database/database.ts";
import type { Log } from "../../platform/lib/log.ts";
import { repeating, type Service } from "../../platform/lib/service.ts";
import { findHeld, type HeldRun, renewLeases } from "../storage/run-leases.ts";
import type { Executor } from "./executor.ts";

export interface HeartbeatOptions {
  database: Database;
  log: Log;
  lease_ms: number;
  heartbeat_ms: number;
}

/** Renews the leases of the runs that a worker executes, and stops those that are no longer its own. */
export class Heartbeat {
  readonly service: Service;
  readonly #options: HeartbeatOptions;
  readonly #running: ReadonlyMap<string, Executor>;
  /** Leases of runs that are locked are being renewed. */
  #renewing: Promise<unknown> | undefined;

  constructor(options: HeartbeatOptions, running: ReadonlyMap<string, Executor>) {
    this.#options = options;
    this.#running = running;
    this.service = repeating(
      options.heartbeat_ms,
      () => this.#beat(),
      (error) => {
        options.log.error({ error }, "a heartbeat failed");
        this.#stopIfExpired();
      },
    );
  }

  /** Without heartbeats for as long as a lease, other processes take the runs: then they must not go on here. */
  #stopIfExpired(): void {
    const expired_before = performance.now() - this.#options.lease_ms;
    for (const executor of this.#running.values())
      if (executor.held_at < expired_before) void executor.stop("lease_lost");
  }

  /** Renews the leases. A run that was not among them is somebody else's by now; one that is to stop is stopped. */
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

  /** A run may be in the middle of a long write: its lease is renewed when that is done, and the others do not wait for it. */
  async #renewLocked(run_ids: readonly string[], renewed: readonly HeldRun[]): Promise<HeldRun[]> {
    const { database, lease_ms, log } = this.#options;
    const { worker_id } = database;
    const done = new Set(renewed.map(({ run_id }) => run_id));
    const left = run_ids.filter((run_id) => !done.has(run_id));
    const locked = await database.writeNow((tx) => findHeld(tx, { worker_id, run_ids: left }));
    if (locked.length > 0 && !this.#renewing)
      this.#renewing = database
        .write((tx) => renewLeases(tx, { worker_id, lease_ms, run_ids: left, waits: true }))
        .catch((error) => log.warn({ error, runs: left }, "leases of runs that are locked were not renewed"))
        .finally(() => {
          this.#renewing = undefined;
        });
    return locked;
  }
}
