import type { Database, Tx } from "../../platform/database/database.ts";
import { LeaseLostError } from "../../platform/errors.ts";
import type { RunStatus, ThreadStatus } from "../contract/records.ts";
import type { StateSummary } from "../graph-hosts/host.ts";
import { insertEvents } from "../storage/events.ts";
import { endHeldRun, endRunIfHeld, holdsLease, type Lease, lockRunIfHeld } from "../storage/run-leases.ts";
import type { RunRow } from "../storage/schema.ts";
import { deleteThreadState, lockThread, setThreadStatus, settleThread } from "../storage/threads.ts";
import type { EventLog } from "./event-log.ts";
import { type Ending, GONE } from "./feed.ts";
import type { Unwritten } from "./journal.ts";
import { rollBack } from "./rollback.ts";

/** How a run is to end. */
export interface Settlement {
  run: Pick<RunRow, "run_id" | "tenant_id" | "thread_id" | "temporary"> & Lease;
  status: RunStatus;
  thread_status: ThreadStatus;
  /** The run ends because of a cancel, so one that is written down is no surprise. */
  cancelled: boolean;
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
 * run is still held. A run that is to be rolled back is undone instead. Readers hear of it after the commit. False when
 * somebody else holds the run by now.
 *
 * @throws LeaseLostError when a cancel was accepted that the settlement does not know of: then nothing was written
 */
export async function settle(database: Database, log: EventLog, settlement: Settlement): Promise<boolean> {
  const { run, unwritten } = settlement;
  const ending = await database.write(async (tx) => {
    // The thread first, as everybody who decides over its runs: two orders of locks would be a deadlock.
    await lockThread(tx, run.tenant_id, run.thread_id);
    return settlement.cancelled ? endCancelled(tx, settlement) : end(tx, settlement);
  });
  if (ending) announce(database, log, run.run_id, ending, ending.status === "gone" ? [] : unwritten.events);
  return ending !== undefined;
}

async function end(tx: Tx, { unwritten, ...settlement }: Settlement): Promise<Ending | undefined> {
  const { run, status, output } = settlement;
  if (unwritten.steps.length > 0 && !(await holdsLease(tx, run))) throw new LeaseLostError(run.run_id);
  for (const write of unwritten.steps) await write(tx);
  if (!(await endRunIfHeld(tx, { run_id: run.run_id, epoch: run.epoch, status, output }))) {
    // Not held, or to stop: the difference matters only to who holds it.
    if (await lockRunIfHeld(tx, run)) throw new LeaseLostError(run.run_id);
    return undefined;
  }
  await insertEvents(tx, run, unwritten.events);
  await settleItsThread(tx, settlement);
  return { status, output };
}

async function endCancelled(tx: Tx, settlement: Settlement): Promise<Ending | undefined> {
  const { run, status, output, unwritten } = settlement;
  const held = await lockRunIfHeld(tx, run);
  if (!held) return undefined;
  if (held.cancel_action === "rollback") {
    await rollBack(tx, held);
    return GONE;
  }
  await endHeldRun(tx, { run_id: run.run_id, epoch: run.epoch, status, output });
  await insertEvents(tx, run, unwritten.events);
  await settleItsThread(tx, settlement);
  return { status, output };
}

async function settleItsThread(
  tx: Tx,
  { run, thread_status, state, error }: Omit<Settlement, "unwritten">,
): Promise<void> {
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
