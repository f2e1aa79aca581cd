import type { Tx } from "../../../platform/database/database.ts";
import { ApiError } from "../../../platform/errors.ts";
import type { CancelAction, MultitaskStrategy } from "../../contract/records.ts";
import { interruptIfPending, listActiveRuns, lockRun, requestCancel } from "../../storage/runs.ts";
import type { RunRow } from "../../storage/schema.ts";
import { deleteThreadState, recomputeStatus } from "../../storage/threads.ts";
import type { LoggedRun } from "../run-log.ts";
import { publishRunEnd, type SettleContext } from "../settlement/settle.ts";
import { storeWebhooks } from "../settlement/webhook.ts";
import { DELETED, type Ending } from "../streams/feed.ts";
import { rollBack } from "./rollback.ts";

export interface CancelIntent {
  action: CancelAction;
  /** Stored as the run's `cancel_reason`. */
  reason: string | null;
}

/** A cancel that a transaction has stored; {@link publishCancels} publishes it after the commit. */
export interface PendingCancel {
  run: LoggedRun;
  action: CancelAction;
  /** The run's end, if the transaction ended the run. Undefined if the run's worker must stop the run. */
  ending: Ending | undefined;
}

/**
 * Cancels an active run, in a transaction that holds its thread's lock. A pending run ends in this transaction. For a running run the
 * transaction stores the intent to stop, and no later step of the run is committed. With the action `interrupt`, the same applies to a
 * pending run that was claimed before: the engine ends it, because the thread must show the steps of the earlier claims.
 *
 * @returns a list with the cancel to publish; empty if the run has ended
 */
export async function cancelLocked(tx: Tx, found: RunRow, { action, reason }: CancelIntent): Promise<PendingCancel[]> {
  // Claims do not lock the thread: a worker may have claimed the run since it was read.
  const run = await lockRun(tx, found);
  if (!run || run.ended_at !== null) return [];
  if (run.status === "pending" && action === "rollback") {
    await rollBack(tx, run);
    return [{ run, action, ending: DELETED }];
  }
  if (run.status === "pending" && run.epoch === 0) {
    await interruptIfPending(tx, run.run_id, reason);
    await storeWebhooks(tx, run, {});
    if (run.temporary) await deleteThreadState(tx, run.thread_id);
    else await recomputeStatus(tx, run.thread_id);
    return [{ run, action, ending: { status: "interrupted", output: null } }];
  }
  await requestCancel(tx, run.run_id, { action, reason });
  return [{ run, action, ending: undefined }];
}

/** Notifies the readers or the workers of cancelled runs, after the commit. */
export function publishCancels(context: SettleContext, cancels: readonly PendingCancel[]): void {
  for (const { run, action, ending } of cancels) {
    context.log.info({ run_id: run.run_id, action }, "run cancel requested");
    if (ending) publishRunEnd(context, run, ending);
    else context.database.hints.emit({ kind: "cancel", run_id: run.run_id });
  }
}

/**
 * Applies the multitask strategy of a new run to the active runs of its thread, in a transaction that holds the thread's lock.
 *
 * @returns cancels to publish after the commit
 * @throws ApiError thread_is_running for the strategy `reject`
 */
export async function applyMultitaskStrategy(
  tx: Tx,
  strategy: MultitaskStrategy,
  thread_id: string,
): Promise<PendingCancel[]> {
  if (strategy === "reject") throw new ApiError("thread_is_running");
  if (strategy === "enqueue") return [];
  const cancels: PendingCancel[] = [];
  // Newest first: each rollback restores the thread as it was when that run was accepted.
  for (const run of (await listActiveRuns(tx, thread_id)).toReversed())
    cancels.push(...(await cancelLocked(tx, run, { action: strategy, reason: null })));
  return cancels;
}
