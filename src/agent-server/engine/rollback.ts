import type { Tx } from "../../platform/database/database.ts";
import { deleteLastRun } from "../storage/run-deletion.ts";
import { wasOvertaken } from "../storage/runs.ts";
import type { RunRow, ThreadBefore } from "../storage/schema.ts";
import { deleteThreadState, findThread, restoreThread, restThread } from "../storage/threads.ts";

/**
 * Undoes an active run, in a transaction that holds its thread: the run, its events, its checkpoints, what it wrote
 * on those of others, and what it changed in the thread's record. Values, interrupts and error need no restoring, as only
 * the end of a run writes them.
 */
export async function rollBack(tx: Tx, run: RunRow): Promise<void> {
  const { thread_id } = run;
  await deleteLastRun(tx, run);
  if (run.temporary) return deleteThreadState(tx, thread_id);
  // A delayed run that others overtook before it began leaves the thread to them.
  const isTheirs = run.started_at === null && (await wasOvertaken(tx, run));
  const before = run.thread_before && !isTheirs ? (JSON.parse(run.thread_before) as ThreadBefore) : undefined;
  const thread = before && (await findThread(tx, run.tenant_id, thread_id));
  if (!before || !thread) return void (await restThread(tx, thread_id));
  // Whoever has touched the record since keeps what he wrote.
  const untouched = thread.updated_at === before.changed_at;
  await restoreThread(tx, {
    thread_id,
    metadata: JSON.stringify(metadataBefore(JSON.parse(thread.metadata), run, before)),
    updated_at: untouched ? before.updated_at : undefined,
  });
}

/** The metadata with the graph and the assistant that it named before, unless somebody else has named others since. */
function metadataBefore(metadata: Record<string, unknown>, run: RunRow, before: ThreadBefore): Record<string, unknown> {
  const restored = { ...metadata };
  for (const key of ["graph_id", "assistant_id"] as const) {
    if (metadata[key] !== run[key]) continue;
    if (before[key] === undefined) delete restored[key];
    else restored[key] = before[key];
  }
  return restored;
}
