import type { RunStatus } from "../contract/records.ts";
import type { Database } from "../storage/database.ts";
import { readEvents, type StoredEvent } from "../storage/events.ts";
import { findRun } from "../storage/runs.ts";

/** How a run ended. */
export interface Ending {
  /** `gone`: the run was rolled back or deleted. */
  status: RunStatus | "gone";
  /** JSON text of the run's output. */
  output: string | null;
}

export const GONE: Ending = { status: "gone", output: null };

/** A run that somebody waits for: which, and whose. */
export interface RunKey {
  run_id: string;
  tenant_id: string;
}

/** Most events kept in memory for the live readers of a run; who falls further behind reads from the database. */
const KEPT_EVENTS = 2_000;
/** ... and the most of their text, in UTF-16 units. */
const KEPT_LENGTH = 4_000_000;

/** Events read from the database at a time. */
const PAGE = 1_000;

/**
 * What the readers of one run share: its last events and the news that there are more. A reader is a number,
 * the last sequence it has seen; it costs no memory of its own however slow it is.
 */
export class Feed {
  readonly #events: StoredEvent[] = [];
  #length = 0;
  #news = Promise.withResolvers<void>();
  /** True while this process executes the run, so that everything new comes by here. */
  live = false;
  ending: Ending | undefined;
  holders = 0;

  /** The saved events after `seq`; undefined when they reach further back than what is kept. */
  after(seq: number): StoredEvent[] | undefined {
    const first = this.#events[0];
    if (!this.live || !first || seq + 1 < first.seq) return undefined;
    return this.#events.slice(seq + 1 - first.seq);
  }

  publish(events: readonly StoredEvent[]): void {
    for (const event of events) {
      this.#events.push(event);
      this.#length += event.data.length;
    }
    while (this.#events.length > KEPT_EVENTS || (this.#length > KEPT_LENGTH && this.#events.length > 1)) {
      this.#length -= this.#events.shift()?.data.length ?? 0;
    }
    this.wake();
  }

  end(ending: Ending): void {
    this.ending = ending;
    this.wake();
  }

  wake(): void {
    this.#news.resolve();
    this.#news = Promise.withResolvers();
  }

  /** Resolves at the next news. Take it before you look, or you miss what comes in between. */
  get news(): Promise<void> {
    return this.#news.promise;
  }
}

/**
 * The events of runs, for any number of readers. Events are saved before they are shown, so an id that a
 * reader has seen never means something else after a crash.
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
    try {
      if (isNew) await this.#wait(feed, feed.news, signal);
      for (;;) {
        const { news } = feed;
        const ending = feed.ending ?? (feed.live ? undefined : await this.#storedEnding(run));
        if (ending) return ending.status === "gone" ? undefined : ending;
        await this.#wait(feed, news, signal);
      }
    } finally {
      this.release(run.run_id, feed);
    }
  }

  /**
   * The run's events after `seq`, in order, as they come, until the run has ended and all are told. In place of events
   * that have expired one `gap` says which they were.
   *
   * @throws the reason of `signal`
   */
  async *follow(run: RunKey, seq: number, signal: AbortSignal): AsyncGenerator<StoredEvent[]> {
    const feed = this.hold(run.run_id);
    let seen = seq;
    try {
      for (;;) {
        // Subscribe, then look: what is published after this line resolves `news`.
        const { news } = feed;
        const ended = feed.ending !== undefined || (!feed.live && (await this.#storedEnding(run)) !== undefined);
        const events =
          feed.after(seen) ?? (await readEvents(this.#database.read, { run_id: run.run_id, after: seen, limit: PAGE }));
        signal.throwIfAborted();
        const last = events.at(-1);
        if (last) {
          yield events;
          seen = last.seq;
        } else if (ended) {
          const gap = await this.#gapAfter(run, seen);
          if (gap) yield [gap];
          return;
        } else {
          await this.#wait(feed, news, signal);
        }
      }
    } finally {
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

  async #storedEnding(run: RunKey): Promise<Ending | undefined> {
    const row = await findRun(this.#database.read, run);
    if (!row) return GONE;
    return row.ended_at === null ? undefined : { status: row.status, output: row.output };
  }

  /** Waits for news; looks again after a while when the run is somebody else's, whose hints can be lost. */
  #wait(feed: Feed, news: Promise<void>, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const timer = feed.live ? undefined : setTimeout(() => finish(resolve), this.#poll_ms);
      const onAbort = () => finish(() => reject(signal.reason));
      const finish = (settle: () => void) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        settle();
      };
      signal.addEventListener("abort", onAbort);
      void news.then(() => finish(resolve));
    });
  }
}
