import type { RunStatus, ThreadStatus } from "../contract/records.ts";
import { LeaseLostError } from "../errors.ts";
import type { StateSummary } from "../graphs/host.ts";
import type { Database, Tx } from "../storage/database.ts";
import { insertEvents } from "../storage/events.ts";
import { holdsLease, type Lease, settleRunIfHeld } from "../storage/run-leases.ts";
import type { RunRow } from "../storage/schema.ts";
import { deleteThreadState, lockThread, setThreadStatus, settleThread } from "../storage/threads.ts";
import type { Ending, EventLog } from "./event-log.ts";
import type { Unwritten } from "./journal.ts";

/** How a run is to end. */
export interface Settlement {
  run: Pick<RunRow, "run_id" | "tenant_id" | "thread_id" | "temporary"> & Lease;
  status: RunStatus;
  thread_status: ThreadStatus;
  /** The answer of wait and join, as JSON text. */
  output: string;
  /** What the thread's record will show; undefined leaves it as it is. */
  state: StateSummary | undefined;
  error: string | null;
  /** Events and steps that are not saved yet. */
  unwritten: Unwritten;
}

/**
 * Ends a run: its last events, its status, its thread's status and values, in one transaction, and only if the
 * run is still held. Readers hear of it after the commit. False when somebody else holds the run by now.
 *
 * @throws LeaseLostError when a cancel was accepted before the run's last steps were written: then nothing was
 */
export async function settle(database: Database, log: EventLog, settlement: Settlement): Promise<boolean> {
  const { run, status, output } = settlement;
  const { events, steps } = settlement.unwritten;
  const settled = await database.write(async (tx) => {
    // The thread first, as everybody who decides over its runs: two orders of locks would be a deadlock.
    await lockThread(tx, run.tenant_id, run.thread_id);
    if (steps.length > 0 && !(await holdsLease(tx, run))) throw new LeaseLostError(run.run_id);
    for (const write of steps) await write(tx);
    if (!(await settleRunIfHeld(tx, { run_id: run.run_id, epoch: run.epoch, status, output }))) return false;
    await insertEvents(tx, run, events);
    await settleItsThread(tx, settlement);
    return true;
  });
  if (settled) announce(database, log, run.run_id, { status, output }, events);
  return settled;
}

async function settleItsThread(tx: Tx, { run, thread_status, state, error }: Settlement): Promise<void> {
  // The thread of a stateless run goes with it; the events stay for those who read them.
  if (run.temporary) return deleteThreadState(tx, run.thread_id);
  if (!state) return void (await setThreadStatus(tx, run.thread_id, thread_status));
  const { values, interrupts } = state;
  await settleThread(tx, { thread_id: run.thread_id, status: thread_status, values, interrupts, error });
}

/** Tells readers in this process and elsewhere that a run has ended, and workers that its thread is free. */
export function announce(
  database: Database,
  log: EventLog,
  run_id: string,
  ending: Ending,
  events: Unwritten["events"] = [],
): void {
  const feed = log.hold(run_id);
  if (events.length > 0) feed.publish(events);
  feed.end(ending);
  log.release(run_id, feed);
  database.hints.emit({ kind: "events", run_id });
  database.hints.emit({ kind: "runs" });
}
