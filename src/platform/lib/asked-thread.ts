import { parentPort, type ResourceLimits, type TransferListItem, Worker } from "node:worker_threads";

export interface ThreadOptions {
  /** Of the module that calls {@link answerQuestions}, without its extension: .ts in the repository, .js in the package. */
  entry: URL;
  name: string;
  /** Plain data for the module. */
  workerData?: unknown;
  resourceLimits?: ResourceLimits;
}

type Reply = { id: number } & ({ value: unknown } | { error: unknown });

interface Waiting {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/**
 * A thread that answers one question after another, so that the work keeps nobody else waiting. It is started with the first
 * question, and again with the next one after it has been lost; it does not keep the process from ending.
 */
export class AskedThread<Q, A> {
  readonly #options: ThreadOptions;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #last_id = 0;
  #isClosed = false;

  constructor(options: ThreadOptions) {
    this.#options = options;
  }

  /**
   * @param transfer buffers of the question that are handed over instead of copied
   * @throws what the module has thrown, as a copy: a name, a message and a stack; or why the thread was lost
   */
  ask(question: Q, transfer: TransferListItem[] = []): Promise<A> {
    if (this.#isClosed) return Promise.reject(new Error(`The thread "${this.#options.name}" was closed.`));
    this.#worker ??= this.#start();
    const worker = this.#worker;
    return new Promise<unknown>((resolve, reject) => {
      const id = ++this.#last_id;
      worker.postMessage({ id, question }, transfer);
      if (this.#waiting.size === 0) worker.ref();
      this.#waiting.set(id, { resolve, reject });
    }) as Promise<A>;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#worker?.terminate();
  }

  #start(): Worker {
    const { entry, ...options } = this.#options;
    const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
    const worker = new Worker(new URL(entry.href + extension), options);
    worker.unref();
    worker.on("message", (reply: Reply) => {
      const waiting = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      if (this.#waiting.size === 0) worker.unref();
      if ("error" in reply) waiting?.reject(reply.error);
      else waiting?.resolve(reply.value);
    });
    worker.on("error", (error) => this.#lose(worker, error));
    worker.on("messageerror", (error) => this.#lose(worker, error));
    worker.on("exit", () => this.#lose(worker, new Error(`The thread "${options.name}" has ended.`)));
    return worker;
  }

  #lose(worker: Worker, error: unknown): void {
    if (this.#worker !== worker) return; // told already
    this.#worker = undefined;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(error);
  }
}

/** The inside of an {@link AskedThread}. */
export function answerQuestions<Q, A>(answer: (question: Q) => A): void {
  const reply = (id: number, question: Q): Reply => {
    try {
      return { id, value: answer(question) };
    } catch (error) {
      return { id, error };
    }
  };
  parentPort?.on("message", ({ id, question }: { id: number; question: Q }) => {
    parentPort?.postMessage(reply(id, question));
  });
}
