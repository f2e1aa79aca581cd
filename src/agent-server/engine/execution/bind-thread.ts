import type { Database } from "../../../platform/database/database.ts";
import { holdsLease } from "../../storage/run-leases.ts";
import { setThreadSnapshot, wasOvertaken } from "../../storage/runs.ts";
import type { RunRow, ThreadSnapshot } from "../../storage/schema.ts";
import { findThread, lockThread, setThreadBusy } from "../../storage/threads.ts";

/** Returns the graph and the assistant in a thread's metadata. The thread's state is read with this graph. */
const graphOf = ({ graph_id, assistant_id }: Record<string, unknown>) => ({ graph_id, assistant_id });

/**
 * Writes the run's graph and assistant into its thread's metadata, and a snapshot of the previous values into the run. A run on a free
 * thread is bound when it is accepted (runs/runs.ts), a queued run when it starts, and a delayed run again if other runs have started
 * in the meantime.
 */
export async function bindThread(database: Database, run: RunRow): Promise<void> {
  const { tenant_id, thread_id } = run;
  const isBound = (thread: { metadata: string }) => {
    const { graph_id, assistant_id } = graphOf(JSON.parse(thread.metadata));
    return graph_id === run.graph_id && assistant_id === run.assistant_id;
  };
  if (run.thread_snapshot !== null && !(await wasOvertaken(database.read, run))) return;
  const found = await findThread(database.read, tenant_id, thread_id);
  // The metadata already contains this graph and assistant, so a rollback has nothing to restore.
  if (!found || (isBound(found) && run.thread_snapshot === null)) return;
  await database.write(async (tx) => {
    const thread = await lockThread(tx, tenant_id, thread_id);
    if (!thread || !(await holdsLease(tx, run))) return;
    const metadata = JSON.parse(thread.metadata) as Record<string, unknown>;
    const bound = JSON.stringify({ ...metadata, graph_id: run.graph_id, assistant_id: run.assistant_id });
    const changed_at = isBound(thread) ? thread.updated_at : await setThreadBusy(tx, thread_id, bound);
    await setThreadSnapshot(tx, run.run_id, snapshotOf(metadata, thread.updated_at, changed_at));
  });
}

/** The part of a thread's record that the rollback of a run restores. */
export const snapshotOf = (
  metadata: Record<string, unknown>,
  updated_at: number,
  changed_at: number,
): ThreadSnapshot => ({ ...graphOf(metadata), updated_at, changed_at });
