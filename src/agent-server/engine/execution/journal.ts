import type { Database, Tx } from "../../../platform/database/database.ts";
import { LeaseLostError } from "../../../platform/errors.ts";
import { insertEvents, type NewEvent } from "../../storage/events.ts";
import { holdsLease, type Lease } from "../../storage/run-leases.ts";
import type { Feed } from "../streams/feed.ts";
import { type DeltaBase, EventEncoder } from "./event-encoder.ts";

/** A write of the graph. It is committed only if the fence ({@link holdsLease}) permits it. */
type Step = (tx: Tx) => Promise<void>;

interface Entry {
  write: Step;
  /** Absent for writes without a waiting caller. */
  waiting?: { resolve(): void; reject(reason: unknown): void };
}

/** The unwritten entries of a closed journal. The transaction that ends the run writes them. */
export interface Unwritten {
  events: NewEvent[];
  steps: Step[];
}

/** Events wait at most this long for a batch. A checkpoint is written with the waiting events, so that every stored step has its events. */
const BATCH_MS = 10;

export interface JournalOptions {
  database: Database;
  run: Lease & { tenant_id: string };
  feed: Feed;
  /** Called when a write is refused or fails; the run cannot continue in this process. */
  onFailure(error: unknown): void;
}

/**
 * Writes the events and steps of a run in order, one transaction at a time, if the fence permits it. Entries that are added during a
 * transaction share the next one.
 */
export class Journal {
  readonly #options: JournalOptions;
  readonly #encoder = new EventEncoder();
  #events: NewEvent[] = [];
  #entries: Entry[] = [];
  #seq = 0;
  #writing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #written_at = 0;
  /** Whether the transaction of `#writing` has begun. If so, new entries belong to the next transaction. */
  #begun = false;
  #closed = false;
  /** Error of a failed write. Nothing is written after it, so that the stored events have no gaps. */
  #failure: unknown;

  constructor(options: JournalOptions) {
    this.#options = options;
  }

  /** Numbers new events after those of previous claims of the run. */
  continueAfter(seq: number): void {
    this.#seq = seq;
  }

  setDeltaBase(base: DeltaBase): void {
    this.#encoder.setDeltaBase(base);
  }

  number([event, data]: readonly [event: string, data: string]): NewEvent {
    return this.#encoder.encode({ seq: ++this.#seq, event, data });
  }

  /** Stores events, then publishes them to readers. The first event after a pause is written at once. */
  append(events: readonly (readonly [event: string, data: string])[]): void {
    if (this.#closed) return;
    this.#events.push(...events.map((event) => this.number(event)));
    if (this.#writing || this.#timer || this.#failure) return;
    const due = this.#written_at + BATCH_MS - performance.now();
    if (due <= 0) this.#write();
    else this.#timer = setTimeout(() => this.#write(), due);
  }

  /** @throws LeaseLostError if the fence refuses the write or the journal is closed; the error of a failed write */
  commit(write: Step): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure);
    if (this.#closed) return Promise.reject(new LeaseLostError(this.#options.run.run_id));
    return new Promise((resolve, reject) => this.#add({ write, waiting: { resolve, reject } }));
  }

  /** Like {@link commit}, without waiting. Later entries are written only if this step is written. */
  store(write: Step): void {
    if (!this.#failure && !this.#closed) this.#add({ write });
  }

  #add(entry: Entry): void {
    this.#entries.push(entry);
    if (!this.#writing) this.#write();
  }

  /** Resolves once everything that was added before is written, or a write has failed. Another branch may add more all the time. */
  async written(): Promise<void> {
    if (this.#failure || this.#closed) return;
    if (this.#events.length + this.#entries.length === 0) await this.#writing;
    else await this.commit(async () => undefined).catch(() => undefined);
  }

  /** Accepts no more entries, waits for the running transaction and returns the entries that are not written. */
  async close(): Promise<Unwritten> {
    this.#closed = true;
    clearTimeout(this.#timer);
    // A transaction that has not begun yet finds no entries.
    if (this.#begun) await this.#writing;
    const entries = this.#entries.splice(0);
    for (const { waiting } of entries) waiting?.reject(new LeaseLostError(this.#options.run.run_id));
    const steps = this.#failure ? [] : entries.map(({ write }) => write);
    return { events: this.#events.splice(0), steps };
  }

  #write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#written_at = performance.now();
    this.#writing = this.#writeOnce().finally(() => {
      this.#writing = undefined;
      if (this.#closed) return;
      if (this.#entries.length > 0) this.#write();
      else if (this.#events.length > 0) this.append([]);
    });
  }

  async #writeOnce(): Promise<void> {
    const { database, run, feed } = this.#options;
    let events: NewEvent[] = [];
    let entries: Entry[] = [];
    try {
      await database.write(async (tx) => {
        // Takes the entries when the transaction begins, including those that were added while it was queued. A retried transaction
        // has the entries of its first attempt.
        if (!this.#begun) {
          events = this.#events.splice(0);
          entries = this.#entries.splice(0);
        }
        this.#begun = true;
        if (events.length + entries.length === 0) return;
        if (!(await holdsLease(tx, run))) throw new LeaseLostError(run.run_id);
        await insertEvents(tx, run, events);
        for (const entry of entries) await entry.write(tx);
      });
    } catch (error) {
      // Kept, because a cancelled run is settled with these events.
      this.#events = [...events, ...this.#events];
      this.#failure = error;
      for (const entry of [...entries, ...this.#entries.splice(0)]) entry.waiting?.reject(error);
      this.#options.onFailure(error);
      return;
    } finally {
      this.#begun = false;
    }
    if (events.length > 0) feed.publish(events);
    for (const entry of entries) entry.waiting?.resolve();
    if (events.length > 0) database.hints.emit({ kind: "events", run_id: run.run_id });
  }
}
