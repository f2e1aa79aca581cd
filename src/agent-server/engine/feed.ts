import type { RunStatus } from "../contract/records.ts";
import type { StoredEvent } from "../storage/event-reader.ts";
import { Batch } from "../storage/event-reader.ts";

/** How a run ended. */
export interface Ending {
  /** `gone`: the run was rolled back or deleted. */
  status: RunStatus | "gone";
  /** JSON text of the run's output. */
  output: string | null;
}

export const GONE: Ending = { status: "gone", output: null };

/** Most events kept in memory for the live readers of a run; who falls further behind reads from the database. */
const KEPT_EVENTS = 2_000;
/** ... and the most of their text, in UTF-16 units. */
const KEPT_LENGTH = 4_000_000;

/**
 * What the readers of one run share: its last events and the news that there are more. A reader is a number,
 * the last sequence it has seen; it costs no memory of its own however slow it is.
 */
export class Feed {
  readonly #events: StoredEvent[] = [];
  #length = 0;
  readonly #watchers = new Set<Watcher>();
  /** The answer to readers at one place: mostly all of them are there, so that they share one array. */
  #tail: { seq: number; events: StoredEvent[] } | undefined;
  /** True while this process executes the run, so that everything new comes by here. */
  live = false;
  ending: Ending | undefined;
  holders = 0;

  /** The saved events after `seq`; undefined when they reach further back than what is kept. */
  after(seq: number): readonly StoredEvent[] | undefined {
    const first = this.#events[0];
    if (!this.live || !first || seq + 1 < first.seq) return undefined;
    if (this.#tail?.seq !== seq) this.#tail = { seq, events: this.#batchFrom(seq + 1 - first.seq) };
    return this.#tail.events;
  }

  #batchFrom(start: number): StoredEvent[] {
    const batch = new Batch();
    for (let i = start; i < this.#events.length; i++) if (!batch.add(this.#events[i] as StoredEvent)) break;
    return batch.events;
  }

  publish(events: readonly StoredEvent[]): void {
    for (const event of events) {
      this.#events.push(event);
      this.#length += event.data.length;
    }
    while (this.#events.length > KEPT_EVENTS || (this.#length > KEPT_LENGTH && this.#events.length > 1)) {
      this.#length -= this.#events.shift()?.data.length ?? 0;
    }
    this.#tail = undefined;
    this.wake();
  }

  end(ending: Ending): void {
    this.ending = ending;
    this.wake();
  }

  wake(): void {
    for (const watcher of this.#watchers) watcher.tell();
  }

  /** Subscribes until the watcher is told to leave. */
  watch(signal: AbortSignal): Watcher {
    const watcher = new Watcher(signal, () => this.#watchers.delete(watcher));
    this.#watchers.add(watcher);
    return watcher;
  }
}

/**
 * One who waits for news of a run. It listens to its signal once: to do so for each wait made V8 keep 50 KB a second for each
 * reader of 100 events/s.
 */
export class Watcher {
  readonly #signal: AbortSignal;
  readonly #onLeave: () => void;
  #hasNews = false;
  #resolve: (() => void) | undefined;

  constructor(signal: AbortSignal, onLeave: () => void) {
    this.#signal = signal;
    this.#onLeave = onLeave;
    signal.addEventListener("abort", this.tell);
  }

  readonly tell = (): void => {
    this.#hasNews = true;
    this.#resolve?.();
  };

  /** Call it before you look: what is told after it ends the next wait, so that nothing is missed in between. */
  forget(): void {
    this.#signal.throwIfAborted();
    this.#hasNews = false;
  }

  /**
   * Resolves when something has been told since {@link forget}, or after `at_most_ms`.
   *
   * @throws the reason of the signal
   */
  async wait(at_most_ms: number | undefined): Promise<void> {
    if (!this.#hasNews) {
      const timer = at_most_ms === undefined ? undefined : setTimeout(this.tell, at_most_ms);
      await new Promise<void>((resolve) => {
        this.#resolve = resolve;
      });
      clearTimeout(timer);
    }
    this.#signal.throwIfAborted();
  }

  leave(): void {
    this.#signal.removeEventListener("abort", this.tell);
    this.#onLeave();
  }
}
