import { ApiError } from "../../../platform/errors.ts";
import { newId } from "../../../platform/lib/ids.ts";
import { withTimeout } from "../../../platform/lib/signal.ts";
import type { TraceEnd, TraceStore } from "./trace-queue.ts";

/** A call to {@link TraceStore}. The body is that of `POST /runs/batch`, a {@link TraceEnd} as JSON, or a JSON list of run IDs. */
export interface OutboxEntry {
  id: string;
  kind: "runs" | "end" | "delete";
  body: Uint8Array<ArrayBuffer>;
}

export interface Acknowledgement {
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
