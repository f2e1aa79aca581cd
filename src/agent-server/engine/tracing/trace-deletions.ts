import type { Database } from "../../../platform/database/database.ts";
import { type BackgroundService, periodicService } from "../../../platform/lib/background-service.ts";
import type { Log } from "../../../platform/lib/log.ts";
import { deleteTraceDeletions, listTraceDeletions, markTraceDeletions } from "../../storage/trace-deletions.ts";
import type { TraceQueue } from "./trace-queue.ts";

const INTERVAL_MS = 10_000;
const BATCH = 500;
/** A trace is deleted again after this time: another process may have sent runs of the trace after the first deletion. */
const REPEAT_AFTER_MS = 60_000;

export interface TraceDeletionsOptions {
  database: Database;
  /** Undefined if traces are not stored: deletion requests are then removed without further action. */
  queue: TraceQueue | undefined;
  log: Log;
}

/**
 * Deletes the traces of deleted runs. The transaction that deletes a run stores a row for its trace, because the traces may be in another
 * database: a crash between the two transactions then loses no deletion.
 */
export class TraceDeletions implements BackgroundService {
  readonly #options: TraceDeletionsOptions;
  readonly #service: BackgroundService;
  #current: Promise<void> | undefined;
  #isRequested = false;

  constructor(options: TraceDeletionsOptions) {
    this.#options = options;
    this.#service = periodicService(
      INTERVAL_MS,
      () => this.#sweepOnce(),
      (error) => options.log.error({ error }, "deleting traces of deleted runs failed"),
    );
  }

  start(): void {
    this.sweep();
    this.#service.start();
  }

  async stop(): Promise<void> {
    await this.#service.stop();
    // sweep() logs the error.
    await this.#current?.catch(() => undefined);
  }

  /** Called after the commit of a deletion. */
  sweep(): void {
    this.#isRequested = true;
    this.#sweepOnce().catch((error) => this.#options.log.error({ error }, "deleting traces of deleted runs failed"));
  }

  #sweepOnce(): Promise<void> {
    this.#current ??= this.#sweepAll().finally(() => {
      this.#current = undefined;
      if (this.#isRequested) this.sweep();
    });
    return this.#current;
  }

  async #sweepAll(): Promise<void> {
    const { database, queue } = this.#options;
    this.#isRequested = false;
    for (;;) {
      const due = await listTraceDeletions(database.read, { repeat_after_ms: REPEAT_AFTER_MS, limit: BATCH });
      if (due.length === 0) return;
      for (const [tenant_id, rows] of Map.groupBy(due, (row) => row.tenant_id))
        await queue?.delete(
          tenant_id,
          rows.map(({ run_id }) => run_id),
        );
      const isFinal = ({ done }: { done: number }) => done === 1 || !queue;
      const ids = (rows: typeof due) => rows.map(({ run_id }) => run_id);
      await database.write(async (tx) => {
        await deleteTraceDeletions(tx, ids(due.filter(isFinal)));
        await markTraceDeletions(tx, ids(due.filter((row) => !isFinal(row))));
      });
      if (due.length < BATCH) return;
    }
  }
}
