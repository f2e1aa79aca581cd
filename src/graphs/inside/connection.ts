import type { CheckpointData, CheckpointRequest, FromHost } from "../host.ts";

interface Waiting {
  resolve(value: unknown): void;
  reject(reason: Error): void;
}

/** A host's side of the conversation with the service. */
export class ServiceConnection {
  readonly #send: (message: FromHost) => void;
  readonly #waiting = new Map<number, Waiting>();
  readonly #outboxes = new Map<string, EventOutbox>();
  #nextId = 1;

  constructor(send: (message: FromHost) => void) {
    this.#send = send;
  }

  /**
   * Asks the service for checkpoints, or to store some.
   *
   * @throws Error when it refuses: the run is no longer this host's, or the database failed
   */
  request(run: RunKey | undefined, request: CheckpointRequest): Promise<unknown> {
    // What the run has emitted goes first: the service stores it together with the checkpoint.
    if (run) this.#outboxes.get(run.run_id)?.flush();
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#send({ type: "request", id, run: run && { run_id: run.run_id, epoch: run.epoch }, request });
    });
  }

  async get(
    run: RunKey | undefined,
    request: Extract<CheckpointRequest, { op: "get" }>,
  ): Promise<CheckpointData | undefined> {
    return (await this.request(run, request)) as CheckpointData | undefined;
  }

  async list(run: RunKey | undefined, request: Extract<CheckpointRequest, { op: "list" }>): Promise<CheckpointData[]> {
    return (await this.request(run, request)) as CheckpointData[];
  }

  onReply({ id, value, error }: { id: number; value?: unknown; error?: string }): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiting?.resolve(value);
    else waiting?.reject(new Error(error));
  }

  /** Opens the way for a run's events. Close it before the run is reported as done. */
  openOutbox(run: RunKey): EventOutbox {
    const outbox = new EventOutbox((events) =>
      this.#send({ type: "events", run_id: run.run_id, epoch: run.epoch, events }),
    );
    this.#outboxes.set(run.run_id, outbox);
    return outbox;
  }

  closeOutbox(run: RunKey): void {
    this.#outboxes.get(run.run_id)?.flush();
    this.#outboxes.delete(run.run_id);
  }
}

export interface RunKey {
  run_id: string;
  epoch: number;
}

/** A message costs 10-20 µs whatever it holds, so events that come in one go travel together, this many at most. */
const MOST_EVENTS = 64;

export class EventOutbox {
  readonly #send: (events: [string, string][]) => void;
  #events: [string, string][] = [];
  #scheduled = false;

  constructor(send: (events: [string, string][]) => void) {
    this.#send = send;
  }

  add(event: string, data: string): void {
    this.#events.push([event, data]);
    if (this.#events.length >= MOST_EVENTS) this.flush();
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.flush();
    });
  }

  flush(): void {
    if (this.#events.length === 0) return;
    const events = this.#events;
    this.#events = [];
    this.#send(events);
  }
}
