import type { Database } from "../../platform/database/database.ts";
import { holdsLease } from "../storage/run-leases.ts";
import { setThreadBefore, wasOvertaken } from "../storage/runs.ts";
import type { RunRow, ThreadBefore } from "../storage/schema.ts";
import { findThread, lockThread, setThreadBusy } from "../storage/threads.ts";

/** The part of a thread's metadata that says which graph reads its state. */
const graphOf = ({ graph_id, assistant_id }: Record<string, unknown>) => ({ graph_id, assistant_id });

/**
 * Names the run's graph and assistant in its thread's metadata, and notes in the run what was there. A run on a free
 * thread does so when it is accepted (agents/runs.ts), one that waited behind others when it begins, and a delayed one once
 * more if others have run meanwhile.
 */
export async function takeThread(database: Database, run: RunRow): Promise<void> {
  const { tenant_id, thread_id } = run;
  const isTaken = (thread: { metadata: string }) => {
    const { graph_id, assistant_id } = graphOf(JSON.parse(thread.metadata));
    return graph_id === run.graph_id && assistant_id === run.assistant_id;
  };
  if (run.thread_before !== null && !(await wasOvertaken(database.read, run))) return;
  const found = await findThread(database.read, tenant_id, thread_id);
  // It was named so before the run: there is nothing to put back.
  if (!found || (isTaken(found) && run.thread_before === null)) return;
  await database.write(async (tx) => {
    const thread = await lockThread(tx, tenant_id, thread_id);
    if (!thread || !(await holdsLease(tx, run))) return;
    const metadata = JSON.parse(thread.metadata) as Record<string, unknown>;
    const taken = JSON.stringify({ ...metadata, graph_id: run.graph_id, assistant_id: run.assistant_id });
    const changed_at = isTaken(thread) ? thread.updated_at : await setThreadBusy(tx, thread_id, taken);
    await setThreadBefore(tx, run.run_id, threadBefore(metadata, thread.updated_at, changed_at));
  });
}

/** What a run has to put back when it is undone. */
export const threadBefore = (
  metadata: Record<string, unknown>,
  updated_at: number,
  changed_at: number,
): ThreadBefore => ({ ...graphOf(metadata), updated_at, changed_at });
