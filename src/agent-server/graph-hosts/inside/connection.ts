import type { CheckpointData, CheckpointRequest, CheckpointWrite, FromHost, HostRequest, ToHost } from "../host.ts";

interface Waiting {
  resolve(value: unknown): void;
  reject(reason: Error): void;
}

export interface RunKey {
  run_id: string;
  epoch: number;
}

/** Past this many events a batch goes out although more may come in the same turn. */
const MAX_EVENTS = 64;
/** A stream of events that has sent this many messages within {@link GATHER_MS} gathers its next ones for as long. */
const MANY_MESSAGES = 4;
const GATHER_MS = 1;

/**
 * A host's side of the conversation with the service. What is said in one turn of the event loop travels together: a
 * message costs 10-20 µs whatever it holds, and what arrives together is committed together.
 */
export class ServiceConnection {
  readonly #send: (messages: FromHost[]) => void;
  readonly #waiting = new Map<number, Waiting>();
  #batch: FromHost[] = [];
  /** The batch goes out at the end of this turn, or with a timer later. */
  #scheduled = false;
  #timer: NodeJS.Timeout | undefined;
  #nextId = 1;
  /** Messages since `#since`. */
  #sent = 0;
  #since = 0;

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
   * Events alone can wait a little when many have gone out just now: one a turn costs the service a message each, and
   * together they cost it one.
   */
  #postEvents(message: FromHost): void {
    const now = performance.now();
    if (now - this.#since > GATHER_MS) {
      this.#since = now;
      this.#sent = 0;
    }
    if (++this.#sent <= MANY_MESSAGES) {
      this.post(message);
    } else {
      this.#batch.push(message);
      this.#timer ??= setTimeout(() => this.#flush(), GATHER_MS);
    }
  }

  /** An event of a run. Order is kept among events and requests, so a checkpoint never overtakes what led to it. */
  emit({ run_id, epoch }: RunKey, event: string, data: string): void {
    const last = this.#batch.at(-1);
    if (last?.type !== "events" || last.run_id !== run_id || last.epoch !== epoch) {
      this.#postEvents({ type: "events", run_id, epoch, events: [[event, data]] });
      return;
    }
    last.events.push([event, data]);
    if (last.events.length >= MAX_EVENTS) this.#flush();
  }

  /**
   * Asks the service for checkpoints, to store some, or for a token.
   *
   * @throws Error when it refuses: the run is no longer this host's, the database failed, the provider is unknown
   */
  request(run: RunKey | undefined, request: HostRequest): Promise<unknown> {
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.post({ type: "request", id, run: run && { run_id: run.run_id, epoch: run.epoch }, request });
    });
  }

  /** Stores something of a run without waiting. When that fails, nothing that the run says later is stored either. */
  store({ run_id, epoch }: RunKey, write: CheckpointWrite): void {
    this.post({ type: "store", run_id, epoch, write });
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
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiting?.resolve(value);
    else waiting?.reject(Object.assign(new Error(error.message), { name: error.name }));
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
