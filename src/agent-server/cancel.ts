import type { Database, Tx } from "../platform/database/database.ts";
import type { CancelAction } from "./contract/records.ts";
import type { EventLog } from "./engine/event-log.ts";
import { GONE } from "./engine/feed.ts";
import { rollBack } from "./engine/rollback.ts";
import { announce } from "./engine/settle.ts";
import { interruptIfPending, lockRun, requestCancel } from "./storage/runs.ts";
import type { RunRow } from "./storage/schema.ts";
import { deleteThreadState, restThread } from "./storage/threads.ts";

/** How a run is cancelled. */
export interface CancelIntent {
  action: CancelAction;
  /** For the run's record. */
  reason: string | null;
}

/** A cancel that is written down; to be announced once its transaction is committed. */
export interface PendingCancel {
  announce(database: Database, events: EventLog): void;
}

/**
 * Cancels an active run, in a transaction that holds its thread. A pending run ends here and now; a running one
 * has its intent to stop written down, from when on none of its steps is committed. So has a pending one that has
 * taken steps before its worker died, when they are to be kept: the engine ends it, since the thread must show them.
 */
export async function cancelLocked(tx: Tx, found: RunRow, intent: CancelIntent): Promise<PendingCancel> {
  // A worker may have claimed it since it was read: claims do not hold the thread.
  const run = await lockRun(tx, found);
  if (!run || run.ended_at !== null) return { announce: () => undefined };
  if (run.status === "pending" && intent.action === "rollback") {
    await rollBack(tx, run);
    return { announce: (database, events) => announce(database, events, run.run_id, GONE) };
  }
  if (run.status === "pending" && run.epoch === 0) {
    await interruptIfPending(tx, run.run_id, intent.reason);
    if (run.temporary) await deleteThreadState(tx, run.thread_id);
    else await restThread(tx, run.thread_id);
    return {
      announce: (database, events) => announce(database, events, run.run_id, { status: "interrupted", output: null }),
    };
  }
  await requestCancel(tx, run.run_id, intent);
  return { announce: (database) => database.hints.emit({ kind: "cancel", run_id: run.run_id }) };
}
