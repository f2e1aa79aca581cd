import type { EventLog } from "../engine/event-log.ts";
import { announce } from "../engine/settle.ts";
import type { Database, Tx } from "../storage/database.ts";
import { interruptIfPending, requestCancelIfRunning } from "../storage/runs.ts";
import type { RunRow } from "../storage/schema.ts";
import { restThread } from "../storage/threads.ts";

/** A cancel that is written down; to be announced once its transaction is committed. */
export interface PendingCancel {
  announce(database: Database, events: EventLog): void;
}

/**
 * Cancels an active run, in a transaction that holds its thread. A pending run ends here and now; a running one
 * has its intent to stop written down, from when on none of its steps is committed.
 */
export async function cancelLocked(tx: Tx, run: RunRow, reason: string | null): Promise<PendingCancel> {
  if ((await interruptIfPending(tx, run.run_id, reason)) === 1) {
    await restThread(tx, run.thread_id);
    return {
      announce: (database, events) => announce(database, events, run.run_id, { status: "interrupted", output: null }),
    };
  }
  await requestCancelIfRunning(tx, run.run_id, reason);
  return { announce: (database) => database.hints.emit({ kind: "cancel", run_id: run.run_id }) };
}
