import type { CheckpointData, CheckpointRequest, CheckpointWrite, FromHost, HostRequest, ToHost } from "../host.ts";

export interface RunKey {
  run_id: string;
  epoch: number;
}

/** A batch with this many events is sent before the turn ends. */
const MAX_EVENTS = 64;
/** An event stream that has sent this many messages within {@link BATCH_MS} collects its next events for as long. */
const MAX_MESSAGES = 4;
const BATCH_MS = 1;

/**
 * The host's connection to the service. Messages of one turn of the event loop are sent together: a message costs 10-20
 * µs regardless of its size, and what arrives together is committed together.
 */
export class ServiceConnection {
  readonly #send: (messages: FromHost[]) => void;
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();
  #batch: FromHost[] = [];
  /** The batch is sent at the end of this turn. Otherwise the timer sends it. */
  #scheduled = false;
  #timer: NodeJS.Timeout | undefined;
  #lastId = 0;
  /** Event messages since `#windowStart`. */
  #sentInWindow = 0;
  #windowStart = 0;

  constructor(send: (messages: FromHost[]) => void) {
    this.#send = send;
  }

  post(message: FromHost): void {
    this.#batch.push(message);
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  /**
   * Delays events when many messages have just been sent: a message per turn is expensive for the service, a batch
   * costs one message.
   */
  #postEvents(message: FromHost): void {
    const now = performance.now();
    if (now - this.#windowStart > BATCH_MS) {
      this.#windowStart = now;
      this.#sentInWindow = 0;
    }
    if (++this.#sentInWindow <= MAX_MESSAGES) {
      this.post(message);
    } else {
      this.#batch.push(message);
      this.#timer ??= setTimeout(() => this.#flush(), BATCH_MS);
    }
  }

  /** Sends an event of a run. Events and requests stay in order, so a checkpoint never precedes its events. */
  emit({ run_id, epoch }: RunKey, event: string, data: string): void {
    const last = this.#batch.at(-1);
    if (last?.type !== "events" || last.run_id !== run_id || last.epoch !== epoch) {
      this.#postEvents({ type: "events", run_id, epoch, events: [[event, data]] });
      return;
    }
    last.events.push([event, data]);
    if (last.events.length >= MAX_EVENTS) this.#flush();
  }

  request(run: RunKey | undefined, request: HostRequest): Promise<unknown> {
    const id = this.nextId();
    const pending = Promise.withResolvers<unknown>();
    this.#pending.set(id, pending);
    this.post({ type: "request", id, run: run && { run_id: run.run_id, epoch: run.epoch }, request });
    return pending.promise;
  }

  /** Stores a write of a run without waiting. If it fails, no later write of the run is stored. */
  store({ run_id, epoch }: RunKey, write: CheckpointWrite): void {
    this.post({ type: "store", run_id, epoch, write });
  }

  /** An id that is unique within the host. */
  nextId(): number {
    return ++this.#lastId;
  }

  async get(
    run: RunKey | undefined,
    request: Extract<CheckpointRequest, { op: "get" }>,
  ): Promise<CheckpointData | undefined> {
    return (await this.request(run, request)) as CheckpointData | undefined;
  }

  async list(
    run: RunKey | undefined,
    request: Extract<CheckpointRequest, { op: "list" }>,
  ): Promise<{ checkpoints: CheckpointData[]; isWhole: boolean }> {
    return (await this.request(run, request)) as { checkpoints: CheckpointData[]; isWhole: boolean };
  }

  onReply({ id, value, error }: Extract<ToHost, { type: "reply" }>): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (error === undefined) pending?.resolve(value);
    else pending?.reject(Object.assign(new Error(error.message), { name: error.name }));
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#batch.length === 0) return;
    const messages = this.#batch;
    this.#batch = [];
    this.#send(messages);
  }
}
