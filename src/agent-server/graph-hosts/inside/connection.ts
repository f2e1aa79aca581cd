import type { CheckpointData, CheckpointRequest, CheckpointWrite } from "../checkpoint-requests.ts";
import type { FromHost, HostRequest, RunEpoch, ToHost } from "../host.ts";

/** A batch is sent before the turn ends when one of its messages contains this many events. */
const MAX_EVENTS = 64;
/** After this many event messages within {@link BATCH_MS}, later events are sent in batches, one per {@link BATCH_MS}. */
const MAX_MESSAGES = 4;
const BATCH_MS = 1;

/**
 * The host's connection to the service. Messages of one turn of the event loop are sent together: a message costs 10-20 µs regardless of
 * its size, and messages that arrive together share a commit.
 */
export class ServiceConnection {
  readonly #send: (messages: FromHost[]) => void;
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();
  #batch: FromHost[] = [];
  /** Whether the batch is sent at the end of this turn and not by the timer. */
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

  /** Batches events after many messages in a short time, because the service handles a batch as one message. */
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

  /** Events and requests stay in order, so a checkpoint never precedes its events. */
  emit({ run_id, epoch }: RunEpoch, event: string, data: string): void {
    const last = this.#batch.at(-1);
    if (last?.type !== "events" || last.run_id !== run_id || last.epoch !== epoch) {
      this.#postEvents({ type: "events", run_id, epoch, events: [[event, data]] });
      return;
    }
    last.events.push([event, data]);
    if (last.events.length >= MAX_EVENTS) this.#flush();
  }

  request(run: RunEpoch | undefined, request: HostRequest): Promise<unknown> {
    const id = this.nextId();
    const pending = Promise.withResolvers<unknown>();
    this.#pending.set(id, pending);
    this.post({ type: "request", id, run: run && { run_id: run.run_id, epoch: run.epoch }, request });
    return pending.promise;
  }

  store({ run_id, epoch }: RunEpoch, write: CheckpointWrite): void {
    this.post({ type: "store", run_id, epoch, write });
  }

  nextId(): number {
    return ++this.#lastId;
  }

  async get(
    run: RunEpoch | undefined,
    request: Extract<CheckpointRequest, { op: "get" }>,
  ): Promise<CheckpointData | undefined> {
    return (await this.request(run, request)) as CheckpointData | undefined;
  }

  async list(
    run: RunEpoch | undefined,
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
