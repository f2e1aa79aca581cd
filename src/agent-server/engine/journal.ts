import type { Database, Tx } from "../../platform/database/database.ts";
import { LeaseLostError } from "../../platform/errors.ts";
import { insertEvents, type NewEvent } from "../storage/events.ts";
import { holdsLease, type Lease } from "../storage/run-leases.ts";
import { EventEncoder, type OutputBase } from "./event-encoder.ts";
import type { Feed } from "./feed.ts";

/** A step of the graph, written behind the fence. */
type Step = (tx: Tx) => Promise<void>;

interface Entry {
  write: Step;
  /** Absent when nobody waits. */
  waiting?: { resolve(): void; reject(reason: unknown): void };
}

/** What a closed journal has not written; it belongs into the transaction that ends the run. */
export interface Unwritten {
  events: NewEvent[];
  /** Steps of the graph; they need the fence. */
  steps: Step[];
}

/**
 * Events wait this long for company before they are written on their own. A checkpoint takes along what waits,
 * so that no crash can keep a step and lose its events.
 */
const GATHER_MS = 10;

export interface JournalOptions {
  database: Database;
  run: Lease & { tenant_id: string };
  feed: Feed;
  /** The database refused or failed; the run cannot go on here. */
  onFailure(error: unknown): void;
}

/**
 * Everything that a running run writes goes through its journal: in order, one transaction at a time, each
 * behind the fence. What arrives while one is being written shares the next.
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
  /** The transaction of `#writing` has begun: what arrives now is for the next. */
  #begun = false;
  #closed = false;
  /** Why a write failed. Nothing is written after it, so that what is stored has no holes. */
  #failure: unknown;

  constructor(options: JournalOptions) {
    this.#options = options;
  }

  /** Numbers the coming events after those that earlier claims of the run have left. */
  continueAfter(seq: number): void {
    this.#seq = seq;
  }

  /** Events may be stored as changes of this. */
  beginWith(base: OutputBase): void {
    this.#encoder.beginWith(base);
  }

  /** Gives an event the next number. */
  number([event, data]: readonly [event: string, data: string]): NewEvent {
    return this.#encoder.encode({ seq: ++this.#seq, event, data });
  }

  /** Adds events; they are saved, then shown to readers. The first after a pause goes at once. */
  append(events: readonly (readonly [event: string, data: string])[]): void {
    if (this.#closed) return;
    this.#events.push(...events.map((event) => this.number(event)));
    if (this.#writing || this.#timer || this.#failure) return;
    const due = this.#written_at + GATHER_MS - performance.now();
    if (due <= 0) this.#write();
    else this.#timer = setTimeout(() => this.#write(), due);
  }

  /**
   * Writes a step of the graph within the run's next transaction.
   *
   * @throws LeaseLostError when the run is no longer held, or is to stop: then nothing was written
   */
  commit(write: Step): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure);
    if (this.#closed) return Promise.reject(new LeaseLostError(this.#options.run.run_id));
    return new Promise((resolve, reject) => this.#add({ write, waiting: { resolve, reject } }));
  }

  /** The same for a step that nobody waits for: what comes later is written only if it was. */
  store(write: Step): void {
    if (!this.#failure && !this.#closed) this.#add({ write });
  }

  #add(entry: Entry): void {
    this.#entries.push(entry);
    if (!this.#writing) this.#write();
  }

  /** Resolves once all that has come so far is written, or has failed. */
  async written(): Promise<void> {
    while (!this.#failure && (this.#writing || this.#events.length > 0 || this.#entries.length > 0)) {
      if (!this.#writing) this.#write();
      await this.#writing;
    }
  }

  /** Ends the journal: nothing more is accepted, what is under way is awaited, and the rest is given back. */
  async close(): Promise<Unwritten> {
    this.#closed = true;
    clearTimeout(this.#timer);
    // A transaction that has been asked for and not begun will find nothing to do.
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
        this.#begun = true;
        // Taken when the transaction begins, not when it was asked for: what has come meanwhile shares it. A
        // repeated transaction keeps what the first one took.
        events = [...events, ...this.#events.splice(0)];
        entries = [...entries, ...this.#entries.splice(0)];
        if (events.length + entries.length === 0) return;
        if (!(await holdsLease(tx, run))) throw new LeaseLostError(run.run_id);
        await insertEvents(tx, run, events);
        for (const entry of entries) await entry.write(tx);
      });
    } catch (error) {
      // Of a cancelled run they are still told: it settles with them.
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
