import { once } from "node:events";
import { parentPort, type ResourceLimits, type TransferListItem, Worker } from "node:worker_threads";
import { ApiError, type ErrorCode, type InvalidPart, InvalidRequestError } from "../errors.ts";
import { JsonError } from "./json/json.ts";
import type { JsonFault } from "./json/json-fault.ts";
import { Signal } from "./signal.ts";
import { type InitialHeap, resetInitialHeap, setInitialHeap } from "./thread-heap.ts";

/** Operations by name. Arguments and results cross threads, so they are plain data. */
export type Operations = Record<string, (...args: never[]) => unknown>;

/** The result of a call. A generator is sent piece by piece; a failure before the first piece rejects the call. */
export type CallResult<R> = ReceivedAs<Awaited<R>>;
type ReceivedAs<T> = T extends Generator<infer Piece> ? AsyncIterable<Piece> : T;

export interface WorkerRpcOptions {
  /** The module that calls {@link serveRpc}, without its extension, which is .ts in the repository and .js in the package. */
  entry: URL;
  name: string;
  workerData?: unknown;
  resourceLimits?: ResourceLimits;
  initial_mb?: InitialHeap;
  /** Maps the reason why the worker ended to the error of its open calls. Default: the reason itself. */
  lostError?(cause: unknown): Error;
}

interface Request {
  id: number;
  operation: string;
  args: unknown[];
}

type Reply = { id: number } & ({ value: unknown } | { piece: unknown } | { isLast: true } | { error: WireError });

type WireError =
  | { type: "api"; code: ErrorCode; message: string }
  | { type: "invalid_request"; parts: InvalidPart[] }
  | { type: "json"; message: string; fault: JsonFault }
  | { type: "other"; message: string; stack: string | undefined; fields: Record<string, unknown> };

interface OpenCall {
  resolve(result: unknown): void;
  reject(error: unknown): void;
  pieces?: AsyncQueue<unknown>;
}

/** Calls operations in a worker thread. A call starts the thread if it is not running. Only open calls keep the process alive. */
export class WorkerRpc<O extends Operations> {
  readonly #options: WorkerRpcOptions;
  readonly #open = new Map<number, OpenCall>();
  #worker: Worker | undefined;
  #last_id = 0;
  #isStopped = false;

  constructor(options: WorkerRpcOptions) {
    this.#options = options;
  }

  /**
   * @param transfer buffers of the arguments that are moved, not copied
   * @throws the error of the operation (ApiError, InvalidRequestError and JsonError keep their class), or the reason why the worker ended
   */
  call<Name extends keyof O & string>(
    operation: Name,
    args: Parameters<O[Name]>,
    transfer: TransferListItem[] = [],
  ): Promise<CallResult<ReturnType<O[Name]>>> {
    if (this.#isStopped) return Promise.reject(new Error(`The worker thread "${this.#options.name}" was stopped.`));
    this.#worker ??= this.#start();
    const worker = this.#worker;
    return new Promise<unknown>((resolve, reject) => {
      const id = ++this.#last_id;
      worker.postMessage({ id, operation, args } satisfies Request, transfer);
      if (this.#open.size === 0) worker.ref();
      this.#open.set(id, { resolve, reject });
    }) as Promise<CallResult<ReturnType<O[Name]>>>;
  }

  /** Waits until the worker has finished its calls and its `onStop`. Later calls fail. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    const worker = this.#worker;
    if (!worker) return;
    const exit = once(worker, "exit");
    worker.ref();
    worker.postMessage("stop");
    await exit;
  }

  /** Ends the worker immediately. Open calls and later calls fail. */
  async terminate(): Promise<void> {
    this.#isStopped = true;
    await this.#worker?.terminate();
  }

  /** Ends the worker immediately. Open calls fail with the reason, and the next call starts another worker. */
  async reset(reason: Error): Promise<void> {
    const worker = this.#worker;
    if (!worker) return;
    this.#lose(worker, reason);
    await worker.terminate();
  }

  #start(): Worker {
    const { entry, name, workerData, resourceLimits, initial_mb } = this.#options;
    const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
    const limits = resourceLimits && { resourceLimits };
    if (initial_mb) setInitialHeap(initial_mb);
    const worker = new Worker(new URL(entry.href + extension), { name, workerData, ...limits });
    if (initial_mb) worker.once("online", resetInitialHeap);
    worker.unref();
    worker.on("message", (reply: Reply) => this.#settle(worker, reply));
    worker.on("error", (error) => this.#lose(worker, error));
    worker.on("messageerror", (error) => this.#lose(worker, error));
    worker.on("exit", () => this.#lose(worker, new Error(`The worker thread "${name}" exited.`)));
    return worker;
  }

  #settle(worker: Worker, reply: Reply): void {
    const call = this.#open.get(reply.id);
    if (!call) return;
    if ("piece" in reply) {
      piecesOf(call).push(reply.piece);
      return;
    }
    this.#open.delete(reply.id);
    if (this.#open.size === 0 && !this.#isStopped) worker.unref();
    if ("isLast" in reply) piecesOf(call).end();
    else if ("value" in reply) call.resolve(reply.value);
    else fail(call, fromWire(reply.error));
  }

  #lose(worker: Worker, cause: unknown): void {
    if (this.#worker !== worker) return; // The loss of this worker was already handled.
    this.#worker = undefined;
    const calls = [...this.#open.values()];
    this.#open.clear();
    const error = this.#options.lostError?.(cause) ?? cause;
    for (const call of calls) fail(call, error);
  }
}

/** Returns the queue that receives the pieces of a generator. The first piece resolves the call with the queue. */
function piecesOf(call: OpenCall): AsyncQueue<unknown> {
  if (!call.pieces) {
    call.pieces = new AsyncQueue();
    call.resolve(call.pieces);
  }
  return call.pieces;
}

function fail({ reject, pieces }: OpenCall, error: unknown): void {
  pieces?.end(error);
  reject(error);
}

/** @param onStop runs after the last call, before the thread ends */
export function serveRpc(operations: Operations, onStop?: () => Promise<void>): void {
  let active = 0;
  let isStopping = false;
  parentPort?.on("message", async (message: Request | "stop") => {
    if (message === "stop") isStopping = true;
    else {
      active++;
      await execute(operations, message);
      active--;
    }
    if (!isStopping || active > 0) return;
    await onStop?.();
    parentPort?.close();
  });
}

async function execute(operations: Operations, { id, operation, args }: Request): Promise<void> {
  const send = (reply: Reply) => parentPort?.postMessage(reply);
  try {
    const run = operations[operation] as ((...args: unknown[]) => unknown) | undefined;
    if (!run) throw new Error(`The worker thread has no operation "${operation}".`);
    const value = await run(...args);
    if (!isGenerator(value)) return send({ id, value });
    for (const piece of value) send({ id, piece });
    send({ id, isLast: true });
  } catch (error) {
    send({ id, error: toWire(error) });
  }
}

const isGenerator = (value: unknown): value is Generator =>
  typeof value === "object" && value !== null && "next" in value && Symbol.iterator in value;

/** Fields of driver and system errors by which callers distinguish a full disk or an unavailable database from a defect. */
const KEPT_FIELDS = ["name", "code", "errcode", "syscall"];

function toWire(error: unknown): WireError {
  if (error instanceof InvalidRequestError) return { type: "invalid_request", parts: error.parts };
  if (error instanceof ApiError) return { type: "api", code: error.code, message: error.message };
  if (error instanceof JsonError) return { type: "json", message: error.message, fault: error.fault };
  const { message, stack } = error as Error;
  const fields = KEPT_FIELDS.flatMap((name) => {
    const value = (error as Record<string, unknown>)[name];
    return typeof value === "string" || typeof value === "number" ? [[name, value]] : [];
  });
  return { type: "other", message, stack, fields: Object.fromEntries(fields) };
}

function fromWire(error: WireError): Error {
  switch (error.type) {
    case "api":
      return ApiError.of(error.code, error.message);
    case "invalid_request":
      return new InvalidRequestError(error.parts);
    case "json":
      return new JsonError(error.message, error.fault);
    case "other": {
      const { message, stack, fields } = error;
      return Object.assign(new Error(message), { stack }, fields);
    }
  }
}

/** A queue between one producer and one consumer. */
export class AsyncQueue<T> implements AsyncIterable<T> {
  readonly #items: T[] = [];
  readonly #signal = new Signal();
  #isEnded = false;
  #error: unknown;

  push(item: T): void {
    this.#items.push(item);
    this.#signal.notify();
  }

  /** @param error thrown to the consumer after the items */
  end(error?: unknown): void {
    this.#isEnded = true;
    this.#error = error;
    this.#signal.notify();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (;;) {
      if (this.#items.length > 0) yield this.#items.shift() as T;
      else if (this.#error !== undefined) throw this.#error;
      else if (this.#isEnded) return;
      else await this.#signal.wait();
    }
  }
}
