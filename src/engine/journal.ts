import { LeaseLostError } from "../errors.ts";
import type { Database, Tx } from "../storage/database.ts";
import { insertEvents, type StoredEvent } from "../storage/events.ts";
import { holdsLease, type Lease } from "../storage/run-leases.ts";
import type { Feed } from "./event-log.ts";

interface Entry {
  write(tx: Tx): Promise<void>;
  resolve(): void;
  reject(reason: unknown): void;
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
  #events: StoredEvent[] = [];
  #entries: Entry[] = [];
  #seq = 0;
  #writing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #written_at = 0;
  #closed = false;
  /** A write was refused, and the next would be. */
  #refused = false;

  constructor(options: JournalOptions) {
    this.#options = options;
  }

  /** Numbers the coming events after those that earlier claims of the run have left. */
  continueAfter(seq: number): void {
    this.#seq = seq;
  }

  /** Adds events; they are saved, then shown to readers. The first after a pause goes at once. */
  append(events: readonly (readonly [event: string, data: string])[]): void {
    if (this.#closed) return;
    for (const [event, data] of events) this.#events.push({ seq: ++this.#seq, event, data });
    if (this.#writing || this.#timer || this.#refused) return;
    const due = this.#written_at + GATHER_MS - performance.now();
    if (due <= 0) this.#write();
    else this.#timer = setTimeout(() => this.#write(), due);
  }

  /**
   * Writes within the run's next transaction.
   *
   * @throws LeaseLostError when the run is no longer held, or is to stop: then nothing was written
   */
  commit(write: (tx: Tx) => Promise<void>): Promise<void> {
    if (this.#closed) return Promise.reject(new LeaseLostError(this.#options.run.run_id));
    return new Promise((resolve, reject) => {
      this.#entries.push({ write, resolve, reject });
      if (!this.#writing) this.#write();
    });
  }

  /**
   * Ends the journal: nothing more is accepted, what is under way is awaited, and the remaining events are
   * given back, to be saved in the transaction that settles the run.
   */
  async close(): Promise<StoredEvent[]> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#writing;
    for (const entry of this.#entries.splice(0)) entry.reject(new LeaseLostError(this.#options.run.run_id));
    return this.#events.splice(0);
  }

  #write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#written_at = performance.now();
    this.#writing = this.#writeOnce().finally(() => {
      this.#writing = undefined;
      if (this.#closed) return;
      if (this.#entries.length > 0) this.#write();
      else if (this.#events.length > 0 && !this.#refused) this.append([]);
    });
  }

  async #writeOnce(): Promise<void> {
    const { database, run, feed } = this.#options;
    let events: StoredEvent[] = [];
    let entries: Entry[] = [];
    try {
      await database.write(async (tx) => {
        // Taken when the transaction begins, not when it was asked for: what has come meanwhile shares it. A
        // repeated transaction keeps what the first one took.
        events = [...events, ...this.#events.splice(0)];
        entries = [...entries, ...this.#entries.splice(0)];
        if (!(await holdsLease(tx, run))) throw new LeaseLostError(run.run_id);
        await insertEvents(tx, run, events);
        for (const entry of entries) await entry.write(tx);
      });
    } catch (error) {
      // Of a cancelled run they are still told: it settles with them.
      this.#events = [...events, ...this.#events];
      for (const entry of entries) entry.reject(error);
      this.#refused = true;
      this.#options.onFailure(error);
      return;
    }
    if (events.length > 0) feed.publish(events);
    for (const entry of entries) entry.resolve();
    if (events.length > 0) database.hints.emit({ kind: "events", run_id: run.run_id });
  }
}
