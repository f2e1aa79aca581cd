import type { Tx } from "../platform/database/database.ts";
import { ApiError } from "../platform/errors.ts";
import { cancelLocked, type PendingCancel } from "./cancel.ts";
import type { RunCreate } from "./contract/run-create.ts";
import type { RunRow } from "./storage/schema.ts";

/**
 * What a new run does to the active runs of its thread, in a transaction that holds the thread.
 *
 * @returns cancels to announce after the commit
 * @throws ApiError thread_is_running for the strategy `reject`
 */
export async function makeWay(
  tx: Tx,
  strategy: RunCreate["multitask_strategy"],
  active: RunRow[],
): Promise<PendingCancel[]> {
  switch (strategy) {
    case "reject":
      throw new ApiError("thread_is_running");
    case "interrupt":
    case "rollback": {
      const cancels: PendingCancel[] = [];
      // The newest first: each finds the thread as it was when it was accepted.
      for (const run of active.toReversed())
        cancels.push(await cancelLocked(tx, run, { action: strategy, reason: null }));
      return cancels;
    }
    default:
      return [];
  }
}
