import type { Database, Tx } from "../../../platform/database/database.ts";
import { LeaseLostError } from "../../../platform/errors.ts";
import type { Log } from "../../../platform/lib/log.ts";
import type { RunStatus, ThreadStatus } from "../../contract/records.ts";
import type { RunKwargs, StateSummary } from "../../graph-hosts/host.ts";
import { insertEvents } from "../../storage/events.ts";
import { endHeldRun, endRunIfHeld, holdsLease, lockRunIfHeld } from "../../storage/run-leases.ts";
import { keepStateless } from "../../storage/runs.ts";
import type { RunRow } from "../../storage/schema.ts";
import { deleteThreadState, lockThreadId, setThreadStatus, settleThread } from "../../storage/threads.ts";
import { rollBack } from "../cancellation/rollback.ts";
import type { Unwritten } from "../execution/journal.ts";
import { durationOf, type LoggedRun, runFields } from "../run-log.ts";
import type { RunMetrics } from "../run-metrics.ts";
import type { EventLog } from "../streams/event-log.ts";
import { DELETED, type Ending } from "../streams/feed.ts";
import type { RunTraces } from "../tracing/run-traces.ts";
import { storeWebhooks } from "./webhook.ts";

export interface SettleContext {
  database: Database;
  events: EventLog;
  log: Log;
  metrics: RunMetrics;
  /** Undefined if runs are not traced. */
  traces: RunTraces | undefined;
  /** Called after the commit of a deletion. */
  deleteTraces(): void;
}

export interface Settlement {
  run: RunRow;
  status: RunStatus;
  thread_status: ThreadStatus;
  /** Whether the run ends because of a cancel, so that its row has a cancel intent. */
  cancelled: boolean;
  /** Response body of wait and join, as JSON text. */
  output: string;
  /** State for the thread's record; undefined leaves the record's state unchanged. */
  state: StateSummary | undefined;
  error: string | null;
  unwritten: Unwritten;
  /** Whether neither a webhook nor a push notification reports the end. */
  is_silent?: true;
}

/**
 * Ends a run in one transaction, which stores its last events and status, the thread's status and values, and the webhook. If the cancel
 * action is `rollback`, rolls the run back instead. Publishes the end after the commit.
 *
 * @returns false if this worker no longer holds the run
 * @throws LeaseLostError if the fence refuses the unwritten steps, or if a cancel was stored and the settlement is not `cancelled`
 */
export async function settle(context: SettleContext, settlement: Settlement): Promise<boolean> {
  const { database } = context;
  const { run, unwritten } = settlement;
  const ended = await database.write(async (tx) => {
    // Every transaction on a thread's runs locks the thread first; another order would deadlock.
    await lockThreadId(tx, run);
    return settlement.cancelled ? endCancelled(tx, settlement) : end(tx, settlement);
  });
  if (!ended) return false;
  const { ending, push_configs } = ended;
  publishRunEnd(context, { ...run, push_configs }, ending, ending === DELETED ? [] : unwritten.events);
  if (ending !== DELETED) context.traces?.onEnd(run, settlement);
  return true;
}

/** The end of a run, with a field that may have changed since the claim. */
type Ended = Pick<RunRow, "push_configs"> & { ending: Ending };

async function end(tx: Tx, { unwritten, ...settlement }: Settlement): Promise<Ended | undefined> {
  const { run, status, output } = settlement;
  if (unwritten.steps.length > 0 && !(await holdsLease(tx, run))) throw new LeaseLostError(run.run_id);
  for (const write of unwritten.steps) await write(tx);
  const ended = await endRunIfHeld(tx, { run_id: run.run_id, epoch: run.epoch, status, output });
  if (!ended) {
    // The run is still held here, so a cancel was stored.
    if (await lockRunIfHeld(tx, run)) throw new LeaseLostError(run.run_id);
    return undefined;
  }
  await insertEvents(tx, run, unwritten.events);
  await settleThreadOf(tx, settlement, ended);
  return { ...ended, ending: { status, output } };
}

async function endCancelled(tx: Tx, settlement: Settlement): Promise<Ended | undefined> {
  const { run, status, output, unwritten } = settlement;
  const held = await lockRunIfHeld(tx, run);
  if (!held) return undefined;
  if (held.cancel_action === "rollback") {
    await rollBack(tx, held);
    return { push_configs: null, ending: DELETED };
  }
  await endHeldRun(tx, { run_id: run.run_id, epoch: run.epoch, status, output });
  await insertEvents(tx, run, unwritten.events);
  await settleThreadOf(tx, settlement, held);
  return { push_configs: held.push_configs, ending: { status, output } };
}

async function settleThreadOf(
  tx: Tx,
  { run, thread_status, state, error, is_silent }: Omit<Settlement, "unwritten">,
  { push_configs }: Pick<RunRow, "push_configs">,
): Promise<void> {
  if (!is_silent) await storeWebhooks(tx, { ...run, push_configs }, { values: state?.values, error });
  // The thread of a stateless run is deleted when the run ends. The events of the run are kept for its readers.
  const isKept = run.temporary === 1 && thread_status === "interrupted" && keepsPaused(run);
  if (run.temporary && !isKept) return deleteThreadState(tx, run.thread_id);
  if (isKept) await keepStateless(tx, run);
  if (!state) return void (await setThreadStatus(tx, run.thread_id, thread_status, error));
  const { values, interrupts } = state;
  await settleThread(tx, { thread_id: run.thread_id, status: thread_status, values, interrupts, error });
}

const keepsPaused = ({ kwargs }: RunRow): boolean => (JSON.parse(kwargs) as RunKwargs).keep_paused === true;

/** Notifies readers of the end of a run, and workers that its thread is free, after the commit. */
export function publishRunEnd(
  { database, events, log, metrics, traces, deleteTraces }: SettleContext,
  run: LoggedRun,
  ending: Ending,
  last_events: Unwritten["events"] = [],
): void {
  const { run_id, epoch, attempt } = run;
  const feed = events.hold(run_id);
  if (last_events.length > 0) feed.publish(last_events);
  feed.end(ending, epoch);
  events.release(run_id, feed);
  database.hints.emit({ kind: "events", run_id });
  database.hints.emit({ kind: "runs" });
  metrics.onEnd(run, ending === DELETED ? "rolled_back" : ending.status);
  if (run.webhook !== null || run.push_configs !== null) database.hints.emit({ kind: "webhooks" });
  if (ending === DELETED) {
    traces?.onDelete(run_id);
    deleteTraces();
    log.info({ ...runFields(run), attempt }, "run rolled back");
  } else log.info({ ...runFields(run), status: ending.status, attempt, duration_ms: durationOf(run) }, "run settled");
}
