import { Signal } from "../../../platform/lib/signal.ts";
import type { RunStatus } from "../../contract/records.ts";
import { Batch, type StoredEvent } from "../../storage/event-reader.ts";

export interface Ending {
  /** `deleted`: the run was rolled back or deleted. */
  status: RunStatus | "deleted";
  /** The run's output as JSON text. */
  output: string | null;
}

export const DELETED: Ending = { status: "deleted", output: null };

/** Maximum number of buffered events of a run. Readers that have fallen further behind read from the database. */
const MAX_EVENTS = 2_000;
/** Maximum total length of the buffered events, in UTF-16 units. */
const MAX_LENGTH = 4_000_000;

/** The last events of a run, shared by its readers. A reader's position is the `seq` of its last event, so slow readers need no buffers. */
export class Feed {
  readonly #events: StoredEvent[] = [];
  #length = 0;
  readonly #subscribers = new Set<Signal>();
  /** The batch for readers at one position. Most readers are at the same position and share one array. */
  #tail: { seq: number; events: StoredEvent[] } | undefined;
  /** Epoch of the execution that publishes every new event to this feed, also after its end. Undefined if another process may write events. */
  #epoch: number | undefined;
  ending: Ending | undefined;
  references = 0;

  /** Whether the buffer ends with the newest event of the run. */
  get live(): boolean {
    return this.#epoch !== undefined;
  }

  /**
   * Called when this process begins to execute the run.
   *
   * @param seq the number of the last stored event. If another process has written it, the buffered events are not followed by the next ones.
   */
  begin(epoch: number, seq: number): void {
    this.#epoch = epoch;
    if (this.#events.at(-1)?.seq !== seq) this.#clear();
  }

  #clear(): void {
    this.#events.length = 0;
    this.#length = 0;
    this.#tail = undefined;
  }

  /** Called when this process no longer executes the run. Readers of a run that has not ended continue to read from the database. */
  stop(): void {
    if (!this.ending) this.#epoch = undefined;
    this.wake();
  }

  /** Returns the buffered events after `seq`. If it returns undefined, the events must be read from the database. */
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
    const last = this.#events.at(-1);
    if (last && events[0]?.seq !== last.seq + 1) {
      // Events in between were stored by another execution, or will be published later.
      this.#clear();
      this.#epoch = undefined;
    }
    for (const event of events) {
      this.#events.push(event);
      this.#length += event.data.length;
    }
    while (this.#events.length > MAX_EVENTS || (this.#length > MAX_LENGTH && this.#events.length > 1)) {
      this.#length -= this.#events.shift()?.data.length ?? 0;
    }
    this.#tail = undefined;
    this.wake();
  }

  /** @param epoch of the execution that was ended. If it is not the one of this process, another process may have written the last events. */
  end(ending: Ending, epoch: number): void {
    this.ending = ending;
    if (epoch !== this.#epoch) this.#epoch = undefined;
    this.wake();
  }

  /** Whether the run has ended with the event `seq`. If it returns false, the database must be read. */
  endsAt(seq: number): boolean {
    const last = this.#events.at(-1);
    return this.ending !== undefined && this.live && last !== undefined && seq >= last.seq;
  }

  wake(): void {
    for (const subscriber of this.#subscribers) subscriber.notify();
  }

  get readers(): number {
    return this.#subscribers.size;
  }

  /** @returns a signal that is notified of new events, of the end of the run, and when `abort` is aborted */
  subscribe(abort: AbortSignal): Signal {
    const subscriber = new Signal({ abort });
    this.#subscribers.add(subscriber);
    return subscriber;
  }

  unsubscribe(subscriber: Signal): void {
    this.#subscribers.delete(subscriber);
    subscriber.close();
  }
}
