import type { Database, Tx } from "../../../platform/database/database.ts";
import type { JsonObject } from "../../../platform/lib/json/json.ts";
import { holdsLease } from "../../storage/run-leases.ts";
import { setThreadSnapshot, wasOvertaken } from "../../storage/runs.ts";
import type { RunRow, ThreadRow, ThreadSnapshot } from "../../storage/schema.ts";
import { findThread, lockThread, setThreadBusy } from "../../storage/threads.ts";

/** Returns the graph and the assistant in a thread's metadata. The thread's state is read with this graph. */
const graphOf = ({ graph_id, assistant_id }: Record<string, unknown>) => ({ graph_id, assistant_id });

/**
 * Writes the run's graph and assistant into its thread's metadata, and a snapshot of the previous values into the run. A run on a free
 * thread is bound when it is accepted ({@link bindOnAccept}), a queued run when it starts, and a delayed run again if other runs have
 * started in the meantime.
 */
export async function bindThread(database: Database, run: RunRow): Promise<void> {
  const { tenant_id, thread_id } = run;
  const isBound = (thread: { metadata: string }) => {
    const { graph_id, assistant_id } = graphOf(JSON.parse(thread.metadata));
    return graph_id === run.graph_id && assistant_id === run.assistant_id;
  };
  const snapshot = run.thread_snapshot === null ? undefined : (JSON.parse(run.thread_snapshot) as ThreadSnapshot);
  // A run that is claimed again has a snapshot from after the runs that overtook it.
  if (snapshot && !(await wasOvertaken(database.read, run, snapshot.changed_at))) return;
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

/** `bound_at`: set if the thread was created for this run, and is busy and bound since then. */
export type LockedThread = ThreadRow & { bound_at?: number };

/** Returns a thread that was created busy and bound as {@link bindOnAccept} expects it: idle, with the metadata from before it was bound. */
export const newlyBound = (created: ThreadRow, metadata = created.metadata): LockedThread => ({
  ...created,
  metadata,
  status: "idle",
  bound_at: created.updated_at,
});

/**
 * Sets the thread of a new run busy and binds it, in the transaction that accepts the run.
 *
 * @param run `busy`: whether the thread has active runs. Then the run is bound when it starts.
 * @returns the run's snapshot; null if the thread has active runs
 */
export async function bindOnAccept(
  tx: Tx,
  { thread_id, metadata, updated_at, bound_at }: Omit<LockedThread, "metadata"> & { metadata: JsonObject },
  { busy, ...graph }: { graph_id: string; assistant_id: string; busy: boolean },
): Promise<ThreadSnapshot | null> {
  const bound = busy ? metadata : { ...metadata, ...graph };
  const changed_at = bound_at ?? (await setThreadBusy(tx, thread_id, JSON.stringify(bound)));
  return busy ? null : snapshotOf(metadata, updated_at, changed_at);
}

/** The part of a thread's record that the rollback of a run restores. */
const snapshotOf = (metadata: Record<string, unknown>, updated_at: number, changed_at: number): ThreadSnapshot => ({
  ...graphOf(metadata),
  updated_at,
  changed_at,
});
