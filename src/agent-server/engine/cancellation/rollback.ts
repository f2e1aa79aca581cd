import type { Tx } from "../../../platform/database/database.ts";
import type { JsonObject } from "../../../platform/lib/json/json.ts";
import { deleteLastRun } from "../../storage/run-deletion.ts";
import { wasOvertaken } from "../../storage/runs.ts";
import type { RunRow, ThreadSnapshot } from "../../storage/schema.ts";
import { deleteThreadState, findThread, recomputeStatus, restoreThread } from "../../storage/threads.ts";

/**
 * Rolls back an active run, in a transaction that holds its thread's lock: deletes the run, its events, its checkpoints
 * and its writes on other runs' checkpoints, and restores the thread's record. Values, interrupts and error stay
 * unchanged, because only a settlement writes them.
 */
export async function rollBack(tx: Tx, run: RunRow): Promise<void> {
  const { thread_id } = run;
  await deleteLastRun(tx, run);
  if (run.temporary) return deleteThreadState(tx, thread_id);
  // If later runs started before this delayed run, the record contains their graph and assistant.
  const overtaken = run.started_at === null && (await wasOvertaken(tx, run));
  const snapshot = run.thread_snapshot && !overtaken ? (JSON.parse(run.thread_snapshot) as ThreadSnapshot) : undefined;
  const thread = snapshot && (await findThread(tx, run.tenant_id, thread_id));
  if (!snapshot || !thread) return void (await recomputeStatus(tx, thread_id));
  // If the record was changed later, the time of that change is kept.
  const isUnchanged = thread.updated_at === snapshot.changed_at;
  await restoreThread(tx, {
    thread_id,
    metadata: JSON.stringify(restoredMetadata(JSON.parse(thread.metadata), run, snapshot)),
    updated_at: isUnchanged ? snapshot.updated_at : undefined,
  });
}

/** Returns the metadata with the graph and assistant of the snapshot. A value that was changed after the run was bound is kept. */
function restoredMetadata(metadata: JsonObject, run: RunRow, snapshot: ThreadSnapshot): JsonObject {
  const restored = { ...metadata };
  for (const key of ["graph_id", "assistant_id"] as const) {
    if (metadata[key] !== run[key]) continue;
    if (snapshot[key] === undefined) delete restored[key];
    else restored[key] = snapshot[key];
  }
  return restored;
}
