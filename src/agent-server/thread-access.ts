import type { Caller } from "../platform/contract/caller.ts";
import type { Tx } from "../platform/database/database.ts";
import { ApiError } from "../platform/errors.ts";
import { lockRun } from "./storage/runs.ts";
import type { RunRow, ThreadRow } from "./storage/schema.ts";
import { findThread, lockThread } from "./storage/threads.ts";

/**
 * A run and its thread, held until the transaction ends. Thread first, then run: the order in which everybody takes
 * these locks.
 *
 * @throws ApiError run_not_found
 */
export async function lockRunAndThread(
  tx: Tx,
  key: Pick<RunRow, "run_id" | "thread_id" | "tenant_id">,
): Promise<RunRow> {
  await lockThread(tx, key.tenant_id, key.thread_id);
  const run = await lockRun(tx, key);
  if (!run) throw new ApiError("run_not_found");
  return run;
}

/**
 * @throws ApiError thread_not_found, also for the hidden thread of a stateless run
 */
export async function requireThread(tx: Tx, caller: Caller, thread_id: string): Promise<ThreadRow> {
  const thread = await findThread(tx, caller.tenant_id, thread_id);
  if (!thread || thread.hidden) throw new ApiError("thread_not_found", { thread_id });
  return thread;
}
