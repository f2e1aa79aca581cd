import type { Database } from "../../platform/database/database.ts";
import { whenAvailable } from "../../platform/lib/unavailable.ts";
import type { StoredEvent } from "../storage/event-reader.ts";
import { EventReader } from "../storage/event-reader.ts";
import { findRun } from "../storage/runs.ts";
import { type Ending, Feed, GONE, type Watcher } from "./feed.ts";

/** An event on its way to a reader. Without `seq` it is not part of the log and has no id. */
export type StreamedEvent = Omit<StoredEvent, "seq"> & { seq?: number | string };

/** A run that somebody waits for: which, and whose. */
export interface RunKey {
  run_id: string;
  tenant_id: string;
}

/**
 * The events of runs, for any number of readers. Events are saved before they are shown, so an id that a
 * reader has seen never means something else after a crash. Readers wait while the database is away: a run that goes on has not failed.
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

  /** The feed of a run, kept until everybody who holds it has let go. */
  hold(run_id: string): Feed {
    const feed = this.#feeds.get(run_id) ?? new Feed();
    this.#feeds.set(run_id, feed);
    feed.holders++;
    return feed;
  }

  release(run_id: string, feed: Feed): void {
    if (--feed.holders === 0 && this.#feeds.get(run_id) === feed) this.#feeds.delete(run_id);
  }

  /**
   * Waits until the run has ended. Undefined when there is no such run (any more).
   *
   * @param isNew the run was accepted a moment ago, so there is no use in looking whether it has ended
   * @throws the reason of `signal`
   */
  async ending(run: RunKey, signal: AbortSignal, { isNew = false } = {}): Promise<Ending | undefined> {
    const feed = this.hold(run.run_id);
    const watcher = feed.watch(signal);
    try {
      if (isNew) await this.#wait(feed, watcher);
      for (;;) {
        watcher.forget();
        const ending = feed.ending ?? (feed.live ? undefined : await this.#storedEnding(run, signal));
        if (ending) return ending.status === "gone" ? undefined : ending;
        await this.#wait(feed, watcher);
      }
    } finally {
      watcher.leave();
      this.release(run.run_id, feed);
    }
  }

  /**
   * The run's events after `seq`, in order, as they come, until the run has ended and all are told. In place of events
   * that have expired one `gap` says which they were.
   *
   * @throws the reason of `signal`
   */
  async *follow(run: RunKey, seq: number, signal: AbortSignal): AsyncGenerator<readonly StoredEvent[]> {
    const feed = this.hold(run.run_id);
    const watcher = feed.watch(signal);
    let seen = seq;
    const stored = new EventReader(run.run_id);
    try {
      for (;;) {
        // Subscribe, then look: what is published after this line ends the next wait.
        watcher.forget();
        const ended =
          feed.ending !== undefined || (!feed.live && (await this.#storedEnding(run, signal)) !== undefined);
        const events =
          feed.after(seen) ??
          (await whenAvailable(
            () => signal.aborted,
            () => stored.after(this.#database.read, seen),
          ));
        signal.throwIfAborted();
        const last = events.at(-1);
        if (last) {
          yield events;
          seen = last.seq;
        } else if (ended) {
          const gap = await whenAvailable(
            () => signal.aborted,
            () => this.#gapAfter(run, seen),
          );
          if (gap) yield [gap];
          return;
        } else {
          await this.#wait(feed, watcher);
        }
      }
    } finally {
      watcher.leave();
      this.release(run.run_id, feed);
    }
  }

  /** What to tell a reader of events that have expired since, or before it came. */
  async #gapAfter(run: RunKey, seen: number): Promise<StoredEvent | undefined> {
    const row = await findRun(this.#database.read, run);
    const until = row?.expired_seq ?? 0;
    if (until <= seen) return undefined;
    const data = { run_id: run.run_id, after: seen, until, reason: "These events have expired." };
    return { seq: until, event: "gap", data: JSON.stringify(data) };
  }

  async #storedEnding(run: RunKey, signal: AbortSignal): Promise<Ending | undefined> {
    const row = await whenAvailable(
      () => signal.aborted,
      () => findRun(this.#database.read, run),
    );
    if (!row) return GONE;
    return row.ended_at === null ? undefined : { status: row.status, output: row.output };
  }

  /** Looks again after a while when the run is somebody else's, whose hints can be lost. */
  #wait(feed: Feed, watcher: Watcher): Promise<void> {
    return watcher.wait(feed.live ? undefined : this.#poll_ms);
  }
}
