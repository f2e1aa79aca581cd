import type { ChildProcess } from "node:child_process";
import { type Hint, type Hints, LocalHints } from "../hints.ts";

/** Sent over the IPC channel between a service and its worker processes. `file` is the database. */
type Message = { file: string; hints: Hint[] } | { file: string; worker_id: number };

type Channel = Pick<ChildProcess, "send" | "connected">;

/** The open databases of this process, by file. */
const databases = new Map<string, SharedHints>();
/** In a service its worker processes; in a worker process the service. */
const channels = new Set<Channel>();

/** Exchanges hints with the other processes of this service on the same file. Without such processes, they are local. */
export class SharedHints implements Hints {
  readonly #file: string;
  readonly #worker_id: number;
  readonly #local = new LocalHints();
  readonly #unsent = new Set<string>();
  /** Ids of ended worker processes, whose runs need not wait until their leases expire. */
  readonly lost = new Set<number>();

  constructor(file: string, worker_id: number) {
    this.#file = file;
    this.#worker_id = worker_id;
    databases.set(file, this);
    this.introduce();
  }

  /** Sends the service the id under which this process holds runs. */
  introduce(): void {
    send({ file: this.#file, worker_id: this.#worker_id });
  }

  emit(hint: Hint): void {
    this.#local.emit(hint);
    if (channels.size === 0) return;
    // One message for the hints of one turn of the event loop.
    if (this.#unsent.size === 0) setImmediate(() => this.#flush());
    this.#unsent.add(JSON.stringify(hint));
  }

  receive(hints: readonly Hint[]): void {
    for (const hint of hints) this.#local.emit(hint);
  }

  listen<K extends Hint["kind"]>(kind: K, listener: (hint: Extract<Hint, { kind: K }>) => void): () => void {
    return this.#local.listen(kind, listener);
  }

  close(): void {
    if (databases.get(this.#file) === this) databases.delete(this.#file);
  }

  #flush(): void {
    const hints = [...this.#unsent].map((hint) => JSON.parse(hint) as Hint);
    this.#unsent.clear();
    send({ file: this.#file, hints });
  }
}

function send(message: Message, except?: Channel): void {
  // A process that has just ended gets no more hints; pollers notice what it missed.
  for (const channel of channels) if (channel !== except && channel.connected) channel.send(message, () => undefined);
}

/** Called by a service for each of its worker processes. */
export function connectWorker(child: ChildProcess): void {
  const ids = new Map<string, number>();
  channels.add(child);
  child.on("message", (message: Message) => {
    if ("worker_id" in message) ids.set(message.file, message.worker_id);
    if (!("hints" in message)) return;
    databases.get(message.file)?.receive(message.hints);
    send(message, child);
  });
  child.on("error", () => child.pid === undefined && channels.delete(child));
  child.once("exit", () => {
    channels.delete(child);
    for (const [file, worker_id] of ids) databases.get(file)?.lost.add(worker_id);
  });
}

/** Called by a worker process: connects it to its service. */
export function connectService(): void {
  channels.add(process as Channel);
  process.on("message", (message: Message) => {
    if ("hints" in message) databases.get(message.file)?.receive(message.hints);
  });
  for (const hints of databases.values()) hints.introduce();
}
