import type { Database } from "../../platform/database/database.ts";
import type { ThreadStreamMode } from "../contract/records.ts";
import { lastEventSeq } from "../storage/events.ts";
import { findRun, lastStartedRun, nextStartedRun, type StartedRun } from "../storage/runs.ts";
import { findThread } from "../storage/threads.ts";
import type { EventLog } from "./event-log.ts";

/**
 * A place in the stream of a thread: a run, in the order in which they started, and an event of it. 0 is the news of its
 * start, {@link END} is behind everything.
 */
export interface Position extends Pick<StartedRun, "started_at" | "seq"> {
  event: number;
}

export const START: Position = { started_at: 0, seq: 0, event: 0 };

/** Behind the events of a run come the news of its end, then its state. */
const ENDED = 1e12;
const STATE = ENDED + 1;
const END = STATE;

/** An event of a thread, with the place behind it. */
export interface ThreadEvent {
  mode: ThreadStreamMode;
  event: string;
  /** JSON text. */
  data: string;
  at: Position;
}

type ThreadKey = { thread_id: string; tenant_id: string };

/**
 * The events of all runs of a thread, one run after the other. It is the log of the runs, read in a row: nothing is stored a
 * second time, so it can be resumed at any place for as long as the runs' own events are there.
 */
export class ThreadLog {
  readonly #database: Database;
  readonly #events: EventLog;
  readonly #poll_ms: number;

  constructor(database: Database, events: EventLog, poll_ms: number) {
    this.#database = database;
    this.#events = events;
    this.#poll_ms = poll_ms;
  }

  /** The place behind everything that has happened so far. */
  async now({ thread_id }: ThreadKey): Promise<Position> {
    const run = await lastStartedRun(this.#database.read, thread_id);
    if (!run) return START;
    const { started_at, seq } = run;
    const event = run.ended_at === null ? await lastEventSeq(this.#database.read, run.run_id) : END;
    return { started_at, seq, event };
  }

  /**
   * What happens on a thread after a place, as it happens. Ends when the thread is deleted.
   *
   * @throws the reason of `signal`
   */
  async *follow(thread: ThreadKey, after: Position, signal: AbortSignal): AsyncGenerator<ThreadEvent[]> {
    let at = after;
    for (;;) {
      const started = this.#nextStart(thread.thread_id, signal);
      const run = await nextStartedRun(
        this.#database.read,
        thread.thread_id,
        at.event >= END ? at : { ...at, seq: at.seq - 1 },
      );
      if (run) {
        started.stop();
        const seen = run.seq === at.seq ? at.event : undefined;
        yield* this.#followRun(run, seen, signal);
        at = { started_at: run.started_at, seq: run.seq, event: END };
      } else {
        if (!(await findThread(this.#database.read, thread.tenant_id, thread.thread_id))) return started.stop();
        await started.promise;
      }
    }
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
      for await (const events of this.#events.follow(run, seen ?? 0, signal))
        yield events.map(({ seq: n, event, data }) => ({ mode: "run_modes" as const, event, data, at: at(n) }));
    }
    const ended = await findRun(this.#database.read, run);
    const status = ended?.status ?? "rolled_back";
    if ((seen ?? 0) < ENDED) yield [lifecycle({ event: NEWS_OF_END[status] ?? status, status }, ENDED)];
    if (!ended) return;
    const state = `{"run_id":"${run_id}","status":"${status}","values":${ended.output ?? "null"}}`;
    yield [{ mode: "state_update", event: "state_update", data: state, at: at(STATE) }];
  }

  /** Resolves when a run of the thread may have started, and from time to time, in case the hint was lost. */
  #nextStart(thread_id: string, signal: AbortSignal): { promise: Promise<void>; stop(): void } {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, this.#poll_ms);
    const unlisten = this.#database.hints.listen("thread", (hint) => hint.thread_id === thread_id && resolve());
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort);
    const stop = () => {
      clearTimeout(timer);
      unlisten();
      signal.removeEventListener("abort", onAbort);
      resolve();
    };
    const stopped = promise.finally(stop);
    stopped.catch(() => undefined);
    return { promise: stopped, stop };
  }
}

/** What the end of a run is called, by its status; the others go by their status. */
const NEWS_OF_END: Partial<Record<string, string>> = { success: "completed", error: "failed", timeout: "failed" };
