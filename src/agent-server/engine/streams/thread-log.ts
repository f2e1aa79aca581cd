import type { Database } from "../../../platform/database/database.ts";
import { pollUntil } from "../../../platform/database/poll-until.ts";
import type { ThreadStreamMode } from "../../contract/records.ts";
import type { StoredEvent } from "../../storage/event-reader.ts";
import { lastEventSeq } from "../../storage/events.ts";
import { findRun, lastStartedRuns, nextStartedRun, type StartedRun, startOf } from "../../storage/runs.ts";
import type { RunRow } from "../../storage/schema.ts";
import { findThread, type ThreadKey } from "../../storage/threads.ts";
import type { EventLog } from "./event-log.ts";

/**
 * A position in a thread's stream: a run (runs are ordered by start time) and one of its events. Event 0 is the start of the run,
 * {@link END} its last event.
 */
export interface Position extends Pick<StartedRun, "started_at" | "seq"> {
  event: number;
}

export const START: Position = { started_at: 0, seq: 0, event: 0 };

/** The position after all events of a run. */
export const endOf = ({ started_at, seq }: Pick<Position, "started_at" | "seq">): Position => ({
  started_at,
  seq,
  event: END,
});

/** A run's events are followed by the lifecycle event of its end, then its state. */
const ENDED = 1e12;
const STATE = ENDED + 1;
const END = STATE;

/** An event of a thread, with the position after it. */
export interface ThreadEvent {
  mode: ThreadStreamMode;
  event: string;
  /** JSON text. */
  data: string;
  at: Position;
  /** The event of the run. Readers of the same run share it. Undefined for events of the thread. */
  stored?: StoredEvent;
}

/** The events of all runs of a thread, one run after the other, read from the logs of the runs. */
export class ThreadLog {
  readonly #database: Database;
  readonly #events: EventLog;
  readonly #poll_ms: number;
  /** By the events of a run. Readers at the same position share them. */
  readonly #batches = new WeakMap<readonly StoredEvent[], ThreadEvent[]>();

  constructor(database: Database, events: EventLog, poll_ms: number) {
    this.#database = database;
    this.#events = events;
    this.#poll_ms = poll_ms;
  }

  /** Returns the position after the event with a number of the run with the given `seq`, or after the earlier runs if it has not started. */
  async positionOf({ thread_id }: ThreadKey, seq: number, event: number): Promise<Position> {
    const run = await startOf(this.#database.read, thread_id, seq);
    if (!run) return START;
    return run.seq === seq ? { ...run, event: Math.min(event, END) } : endOf(run);
  }

  /** Returns the thread's last started runs, the latest first. */
  last({ thread_id }: ThreadKey, limit: number): Promise<StartedRun[]> {
    return lastStartedRuns(this.#database.read, thread_id, limit);
  }

  /** Returns the position after all stored events. */
  async now({ thread_id }: ThreadKey): Promise<Position> {
    const [run] = await lastStartedRuns(this.#database.read, thread_id, 1);
    if (!run) return START;
    const { started_at, seq } = run;
    const event = run.ended_at === null ? await lastEventSeq(this.#database.read, run.run_id) : END;
    return { started_at, seq, event };
  }

  /**
   * Yields the stored events of a thread after a position, then new events. Ends when the thread is deleted.
   *
   * @throws `signal.reason` when `signal` is aborted
   */
  async *follow(thread: ThreadKey, after: Position, signal: AbortSignal): AsyncGenerator<ThreadEvent[]> {
    let at = after;
    for (;;) {
      signal.throwIfAborted();
      const run = await this.#nextRun(thread, at, signal);
      if (run === "deleted") return;
      if (!run) continue;
      const seen = run.seq === at.seq ? at.event : undefined;
      yield* this.#followRun(run, seen, signal);
      at = { started_at: run.started_at, seq: run.seq, event: END };
    }
  }

  /** Waits for the run at or after a position. Returns undefined when the signal is aborted, `deleted` if the thread does not exist. */
  #nextRun(
    { thread_id, tenant_id }: ThreadKey,
    at: Position,
    abort: AbortSignal,
  ): Promise<StartedRun | "deleted" | undefined> {
    const { read, hints } = this.#database;
    const after = at.event >= END ? at : { ...at, seq: at.seq - 1 };
    const poll = async () =>
      (await nextStartedRun(read, thread_id, after)) ??
      ((await findThread(read, tenant_id, thread_id)) ? undefined : "deleted");
    return pollUntil(poll, {
      hints,
      kind: "thread",
      isRelevant: (hint) => hint.thread_id === thread_id,
      poll_ms: this.#poll_ms,
      max_poll_ms: this.#poll_ms,
      abort,
    });
  }

  #batchOf({ started_at, seq }: StartedRun, events: readonly StoredEvent[]): ThreadEvent[] {
    const known = this.#batches.get(events);
    if (known) return known;
    const batch = events.map((stored): ThreadEvent => {
      const { event, data } = stored;
      return { mode: "run_modes", event, data, at: { started_at, seq, event: stored.seq }, stored };
    });
    this.#batches.set(events, batch);
    return batch;
  }

  async *#followRun(run: StartedRun, seen: number | undefined, signal: AbortSignal): AsyncGenerator<ThreadEvent[]> {
    const { started_at, seq, run_id, thread_id, assistant_id, graph_id } = run;
    const at = (event: number): Position => ({ started_at, seq, event });
    const about = { run_id, thread_id, assistant_id, graph_id };
    const lifecycle = (data: object, event: number): ThreadEvent => ({
      mode: "lifecycle",
      event: "lifecycle",
      data: JSON.stringify({ ...data, ...about }),
      at: at(event),
    });
    if (seen === undefined) yield [lifecycle({ event: "started" }, 0)];
    if ((seen ?? 0) < ENDED) {
      for await (const events of this.#events.follow(run, seen ?? 0, signal)) yield this.#batchOf(run, events);
    }
    const ended = await findRun(this.#database.read, run);
    const status = ended?.status ?? "rolled_back";
    const error = errorOf(ended);
    if ((seen ?? 0) < ENDED)
      yield [lifecycle({ event: END_EVENTS[status] ?? status, status, ...(error && { error }) }, ENDED)];
    if (!ended) return;
    const state = `{"run_id":"${run_id}","status":"${status}","values":${ended.output ?? "null"}}`;
    yield [{ mode: "state_update", event: "state_update", data: state, at: at(STATE) }];
  }
}

/** The error message of a failed run. */
function errorOf(run: Pick<RunRow, "status" | "output"> | undefined): string | undefined {
  if (!run?.output || (run.status !== "error" && run.status !== "timeout")) return undefined;
  return (JSON.parse(run.output) as { __error__?: { message?: string } }).__error__?.message;
}

/** Lifecycle event of a run's end, by status. For other statuses, the event has the name of the status. */
const END_EVENTS: Partial<Record<string, string>> = { success: "completed", error: "failed", timeout: "failed" };
