import { setTimeout as sleep } from "node:timers/promises";
import { ApiError } from "../../../platform/errors.ts";
import { newId } from "../../../platform/lib/ids.ts";
import type { Log } from "../../../platform/lib/log.ts";
import { Signal, withTimeout } from "../../../platform/lib/signal.ts";

/** How to end the trace runs that are still open after the agent run has ended. */
export interface TraceEnd {
  run_id: string;
  name: string;
  session_name: string;
  /** In milliseconds since the epoch. */
  started_at: number;
  /** Error of the root, set even if the root has already ended; undefined keeps the recorded error. */
  error: string | undefined;
  /** Error of the other runs that have not ended, and of an open root without `error`. */
  open_error: string;
}

/** Stores traces. Calls may be repeated, so implementations must be idempotent. */
export interface TraceStore {
  /** @param body a body of `POST /runs/batch` */
  store(tenant_id: string, body: Uint8Array): Promise<void>;
  end(tenant_id: string, end: TraceEnd): Promise<void>;
  /** Deletes the runs and all runs below them. Unknown runs are ignored. */
  delete(tenant_id: string, run_ids: string[]): Promise<void>;
  /** Rejects the call in progress, and later calls. */
  close?(): void;
}

type Entry = NewEntry & { number: number };
type NewEntry = { tenant_id: string } & (
  | { kind: "runs"; run_id: string; runs: Uint8Array }
  | { kind: "end"; end: TraceEnd }
  | { kind: "delete"; run_ids: string[]; deleted: PromiseWithResolvers<void> }
);
type RunsEntry = Extract<Entry, { kind: "runs" }>;

/** While more than this many bytes are waiting to be stored, new runs are not traced. */
const MAX_PENDING_BYTES = 64 * 2 ** 20;
/** Runs of one workspace are stored together up to this size. */
const MAX_BATCH_BYTES = 4 * 2 ** 20;
/** Maximum number of attempts to store traces. A call that the store refuses is not repeated. */
const MAX_ATTEMPTS = 5;
const RETRY_MS = 1_000;
const STOP_MS = 5_000;
/** Maximum wait for further runs before the waiting runs are stored together. */
const GATHER_MS = 200;

/** Stores traces, one call at a time. During a call, the runs of many traces are collected for the next call. */
export class TraceQueue {
  readonly #store: TraceStore;
  readonly #log: Log;
  #entries: Entry[] = [];
  #pending_bytes = 0;
  #last_number = 0;
  #isBusy = false;
  #isStopping = false;
  #isStopped = false;
  readonly #idle = new Signal();
  /** Notified when enough runs for a batch are waiting, or when the service stops. */
  readonly #full = new Signal();

  constructor(store: TraceStore, log: Log) {
    this.#store = store;
    this.#log = log;
  }

  get isFull(): boolean {
    return this.#pending_bytes > MAX_PENDING_BYTES;
  }

  addRuns(tenant_id: string, run_id: string, runs: Uint8Array): void {
    if (this.#pending_bytes > 4 * MAX_PENDING_BYTES) {
      // A run that produces more than can be stored must not exhaust the memory.
      this.#log.warn(
        { run_id, bytes: runs.byteLength },
        "part of a trace was not stored: too many traces are waiting to be stored",
      );
      return;
    }
    this.#pending_bytes += runs.byteLength;
    if (this.#pending_bytes > MAX_BATCH_BYTES) this.#full.notify();
    this.#add({ kind: "runs", tenant_id, run_id, runs });
  }

  addEnd(tenant_id: string, end: TraceEnd): void {
    this.#add({ kind: "end", tenant_id, end });
  }

  /** Deletes runs once all earlier entries are processed. */
  async delete(tenant_id: string, run_ids: string[]): Promise<void> {
    const deleted = Promise.withResolvers<void>();
    this.#add({ kind: "delete", tenant_id, run_ids, deleted });
    return deleted.promise;
  }

  /** Removes the waiting trace runs of a deleted run. */
  discard(run_id: string): void {
    this.#entries = this.#entries.filter((entry) => {
      const isOfRun = entry.kind === "runs" && entry.run_id === run_id;
      if (isOfRun) this.#pending_bytes -= entry.runs.byteLength;
      return !isOfRun;
    });
  }

  /** Waits up to 5 s for all entries to be stored. The remaining entries are lost. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    if (this.#isBusy) {
      this.#idle.reset();
      this.#full.notify();
      await this.#idle.wait(STOP_MS);
    }
    this.#isStopped = true;
    const lost = this.#entries.splice(0);
    if (lost.length > 0)
      this.#log.warn({ entries: lost.length }, "some traces are lost because they were not stored before shutdown");
    for (const entry of lost)
      if (entry.kind === "delete")
        entry.deleted.reject(new ApiError("unavailable", { reason: "The service is stopping." }));
    this.#store.close?.();
  }

  #add(entry: NewEntry): void {
    this.#entries.push({ ...entry, number: ++this.#last_number });
    if (!this.#isBusy) void this.#storeAll();
  }

  async #storeAll(): Promise<void> {
    this.#isBusy = true;
    while (this.#entries.length > 0) {
      // Waits for more runs: a transaction costs as much as storing the runs of several traces.
      if (!this.#isStopping) await this.#full.wait(GATHER_MS);
      const last = this.#entries.at(-1);
      for (let entry = this.#entries[0]; entry && last; entry = this.#entries[0]) {
        if (entry.number > last.number) break;
        if (entry.kind === "runs") await this.#storeBatch(entry.tenant_id);
        else await this.#storeOne(this.#entries.shift() as Exclude<Entry, RunsEntry>);
      }
    }
    this.#isBusy = false;
    this.#idle.notify();
  }

  async #storeOne(entry: Exclude<Entry, RunsEntry>): Promise<void> {
    const { tenant_id } = entry;
    if (entry.kind === "end") {
      await this.#try(() => this.#store.end(tenant_id, entry.end));
      return;
    }
    await this.#store.delete(tenant_id, entry.run_ids).then(entry.deleted.resolve, entry.deleted.reject);
  }

  async #storeBatch(tenant_id: string): Promise<void> {
    const batch: Uint8Array[] = [];
    let bytes = 0;
    // Concatenated for each attempt, because the store may detach the buffer of the body.
    const store = (runs: readonly Uint8Array[]) =>
      this.#store.store(
        tenant_id,
        Buffer.concat([START, ...runs.flatMap((each, i) => (i === 0 ? each : [COMMA, each])), END]),
      );
    this.#entries = this.#entries.filter((entry) => {
      if (entry.kind !== "runs" || entry.tenant_id !== tenant_id || bytes > MAX_BATCH_BYTES) return true;
      batch.push(entry.runs);
      bytes += entry.runs.byteLength;
      return false;
    });
    if (batch.length === 0) return;
    const stored = await this.#try(() => store(batch), batch.length === 1);
    // Runs that cannot be stored, such as those with too deeply nested values, must not affect other traces.
    if (!stored) for (const runs of batch) await this.#try(() => store([runs]));
    this.#pending_bytes -= bytes;
  }

  /** @returns false if the store refused the call and `isLast` is false; otherwise a failure is logged */
  async #try(work: () => Promise<void>, isLast = true): Promise<boolean> {
    for (let attempt = 1; ; attempt++) {
      try {
        await work();
        return true;
      } catch (error) {
        const isRefused = error instanceof ApiError && error.code !== "unavailable";
        if (isRefused && !isLast) return false;
        if (isRefused || attempt === MAX_ATTEMPTS || this.#isStopped) {
          this.#log.error({ error }, "failed to store the traces of runs");
          return true;
        }
        await sleep(RETRY_MS, undefined, { ref: false });
      }
    }
  }
}

const START = Buffer.from('{"post":[');
const COMMA = Buffer.from(",");
const END = Buffer.from("]}");

/** A call to {@link TraceStore}. The body is that of `POST /runs/batch`, a {@link TraceEnd} as JSON, or a JSON list of run IDs. */
interface OutboxEntry {
  id: string;
  kind: "runs" | "end" | "delete";
  body: Uint8Array<ArrayBuffer>;
}

interface Acknowledgement {
  entry_id: string;
  /** Whether the control plane stored nothing, and would refuse the same entry again. */
  is_refused: boolean;
}

/**
 * Holds the trace calls of a deployment's instance until the control plane fetches them: containers cannot connect to it, and an instance
 * needs no credentials this way. The queue makes one call at a time, so there is at most one entry. It is kept until it is acknowledged.
 */
export class TraceOutbox implements TraceStore {
  #entry: (OutboxEntry & { stored: PromiseWithResolvers<void> }) | undefined;
  #offered = Promise.withResolvers<void>();
  #isClosed = false;

  store(_tenant_id: string, body: Uint8Array): Promise<void> {
    return this.#offer("runs", body);
  }

  end(_tenant_id: string, end: TraceEnd): Promise<void> {
    return this.#offer("end", Buffer.from(JSON.stringify(end)));
  }

  delete(_tenant_id: string, run_ids: string[]): Promise<void> {
    return this.#offer("delete", Buffer.from(JSON.stringify(run_ids)));
  }

  /** Waits up to `timeout_ms` for an entry; returns undefined if there is none. Returns the same entry until it is acknowledged. */
  async next(acknowledged: Acknowledgement | undefined, timeout_ms: number): Promise<OutboxEntry | undefined> {
    const entry = this.#entry;
    if (entry && acknowledged?.entry_id === entry.id) {
      this.#remove();
      if (!acknowledged.is_refused) entry.stored.resolve();
      else entry.stored.reject(new ApiError("invalid_request", { reason: "The control plane refused the traces." }));
    }
    if (!this.#entry && !this.#isClosed) await withTimeout(this.#offered.promise, timeout_ms);
    return this.#entry;
  }

  close(): void {
    this.#isClosed = true;
    this.#offered.resolve();
    this.#entry?.stored.reject(closed());
    this.#entry = undefined;
  }

  #offer(kind: OutboxEntry["kind"], body: Uint8Array): Promise<void> {
    if (this.#isClosed) return Promise.reject(closed());
    const stored = Promise.withResolvers<void>();
    this.#entry = { id: newId(), kind, body: body as Uint8Array<ArrayBuffer>, stored };
    this.#offered.resolve();
    return stored.promise;
  }

  #remove(): void {
    this.#entry = undefined;
    this.#offered = Promise.withResolvers();
  }
}

const closed = () => new ApiError("unavailable", { reason: "The instance is stopping." });
