import type { Database } from "../../../platform/database/database.ts";
import { retryWhileUnavailable } from "../../../platform/database/database-errors.ts";
import type { Signal } from "../../../platform/lib/signal.ts";
import { EventReader, type StoredEvent } from "../../storage/event-reader.ts";
import { findRun } from "../../storage/runs.ts";
import type { RunKey } from "../../storage/schema.ts";
import { DELETED, type Ending, Feed } from "./feed.ts";

/** An event for a reader. An event without `seq` is not stored in the log and has no id. */
export type StreamedEvent = Omit<StoredEvent, "seq"> & { seq?: number | string };

/**
 * Provides the events of runs to any number of readers. Events are stored before publication, so IDs stay valid after a crash. Readers wait
 * while the database is unavailable, because the run may continue.
 */
export class EventLog {
  readonly #database: Database;
  readonly #poll_ms: number;
  readonly #feeds = new Map<string, Feed>();

  constructor(database: Database, poll_ms: number) {
    this.#database = database;
    this.#poll_ms = poll_ms;
    database.hints.listen("events", ({ run_id }) => this.#feeds.get(run_id)?.wake());
  }

  /** Number of requests that stream or wait for a run. */
  get readers(): number {
    return [...this.#feeds.values()].reduce((sum, feed) => sum + feed.readers, 0);
  }

  /** Returns a run's feed. Each caller must call {@link release} afterwards. */
  hold(run_id: string): Feed {
    const feed = this.#feeds.get(run_id) ?? new Feed();
    this.#feeds.set(run_id, feed);
    feed.references++;
    return feed;
  }

  release(run_id: string, feed: Feed): void {
    if (--feed.references === 0 && this.#feeds.get(run_id) === feed) this.#feeds.delete(run_id);
  }

  /**
   * Waits for the end of a run. Returns undefined if the run does not exist or was deleted.
   *
   * @param isNew whether this request has accepted the run; skips the first check of its status
   * @throws `signal.reason` when `signal` is aborted
   */
  async ending(run: RunKey, signal: AbortSignal, { isNew = false } = {}): Promise<Ending | undefined> {
    const feed = this.hold(run.run_id);
    const updates = feed.subscribe(signal);
    try {
      if (isNew) await this.#wait(feed, updates);
      for (;;) {
        signal.throwIfAborted();
        updates.reset();
        const ending = feed.ending ?? (feed.live ? undefined : await this.#storedEnding(run, signal));
        if (ending) return ending === DELETED ? undefined : ending;
        await this.#wait(feed, updates);
      }
    } finally {
      feed.unsubscribe(updates);
      this.release(run.run_id, feed);
    }
  }

  /**
   * Yields the run's events after `seq`, in order, until the run has ended. One `gap` event replaces expired events.
   *
   * @throws `signal.reason` when `signal` is aborted
   */
  async *follow(run: RunKey, seq: number, signal: AbortSignal): AsyncGenerator<readonly StoredEvent[]> {
    const feed = this.hold(run.run_id);
    const updates = feed.subscribe(signal);
    let seen = seq;
    const stored = new EventReader(run.run_id);
    try {
      for (;;) {
        signal.throwIfAborted();
        // Events that are published after the reset end the next wait.
        updates.reset();
        // Without the queries below, which all readers of a run send at the same time.
        if (feed.endsAt(seen)) return;
        const ended =
          feed.ending !== undefined || (!feed.live && (await this.#storedEnding(run, signal)) !== undefined);
        const events =
          feed.after(seen) ?? (await retryUnlessAborted(signal, () => stored.after(this.#database.read, seen)));
        signal.throwIfAborted();
        const last = events.at(-1);
        if (last) {
          yield events;
          seen = last.seq;
        } else if (ended) {
          const gap = await retryUnlessAborted(signal, () => this.#gapAfter(run, seen));
          if (gap) yield [gap];
          return;
        } else {
          await this.#wait(feed, updates);
        }
      }
    } finally {
      feed.unsubscribe(updates);
      this.release(run.run_id, feed);
    }
  }

  async #gapAfter(run: RunKey, seen: number): Promise<StoredEvent | undefined> {
    const row = await findRun(this.#database.read, run);
    const until = row?.expired_seq ?? 0;
    if (until <= seen) return undefined;
    const data = {
      run_id: run.run_id,
      after: seen,
      until,
      reason: "Earlier events of this run have expired and are no longer available.",
    };
    return { seq: until, event: "gap", data: JSON.stringify(data) };
  }

  async #storedEnding(run: RunKey, signal: AbortSignal): Promise<Ending | undefined> {
    const row = await retryUnlessAborted(signal, () => findRun(this.#database.read, run));
    if (!row) return DELETED;
    return row.ended_at === null ? undefined : { status: row.status, output: row.output };
  }

  /** Notifications from other processes can be lost, so waits for their runs have a timeout. */
  #wait(feed: Feed, updates: Signal): Promise<void> {
    return updates.wait(feed.live ? undefined : this.#poll_ms);
  }
}

const retryUnlessAborted = <T>(signal: AbortSignal, read: () => Promise<T>): Promise<T> =>
  retryWhileUnavailable(() => signal.aborted, read);
