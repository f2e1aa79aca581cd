import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { ApiError, type ErrorCode, type InvalidPart, InvalidRequestError } from "../../platform/errors.ts";
import type { JsonPieces } from "../json-pieces.ts";
import { Arriving } from "./async-queue.ts";
import { type Lane, laneOf, type Noun } from "./lanes.ts";
import type { Operations } from "./operations.ts";

/**
 * V8 would take up to 100 MB for the young generation and never give it back (see src/agent-server/graph-hosts/hosts/thread.ts). What a page of 3 MB
 * is made of lives until the page is written, and is copied at each collection: with 48 MB there are 1.3 a page, with 24 MB 2.6.
 * SQLite's cache fills up while an upload is stored, and nothing of it is read again: 8 MB instead of 32 make it no slower.
 */
const MEMORY_MB: Record<Lane, { young: number; cache: number }> = {
  read: { young: 48, cache: 32 },
  write: { young: 24, cache: 8 },
  compute: { young: 24, cache: 32 },
};

/**
 * V8 lets a heap that may become large grow fourfold before it collects, and one of 1 GB by half: a service grows by 90 to
 * 100 MB instead of 170 to 230 in an upload of 30 MB, which takes no longer. A row of 150 MB still fits.
 */
const OLD_GENERATION_MB = 1024;

/** How a lane opens its database. Plain data: it is handed to a thread. */
export interface ThreadSetup {
  database: { file: string; synchronous: "full" | "normal" } | { url: string };
  log_level: string;
}

/** The same for one of them. */
export type LaneSetup = ThreadSetup & { cache_mb: number };

/** What a thread is asked, and what it answers. */
export interface Request {
  id: number;
  noun: Noun;
  verb: string;
  args: unknown[];
}

export type Reply = { id: number } & (
  | { json: string | undefined }
  | { piece: string }
  | { isWhole: true }
  | { api: { code: ErrorCode; message: string } }
  | { invalid: InvalidPart[] }
  | { failed: { message: string; stack: string | undefined; code: string | undefined } }
);

/** An answer as the JSON text that goes to the client: the serving thread does not look into it. */
export interface Answer<T> {
  json: string;
  value(): T;
}

/** The same of a long list: its text comes in pieces, and what is wrong with the request is known before the first. */
export interface AnswerInPieces<T> {
  pieces: AsyncIterable<string>;
  value(): Promise<T>;
}

type Verbs<O> = {
  [V in keyof O]: O[V] extends (...args: infer A) => Promise<infer R>
    ? (...args: A) => Promise<R extends JsonPieces<infer Item> ? AnswerInPieces<Item[]> : Answer<R>>
    : never;
};

/** The operations of experiments, carried out in other threads. */
export type ExperimentsService = { [N in Noun]: Verbs<Operations[N]> } & { stop(): Promise<void> };

/** Starts nothing yet: each lane's thread begins when it is first asked, because most services take no uploads. */
export function experimentThreads(setup: ThreadSetup): ExperimentsService {
  const lanes = new Map<Lane, ThreadLane>();
  const laneFor = (lane: Lane): ThreadLane => {
    const known = lanes.get(lane);
    if (known?.isAlive) return known;
    const started = new ThreadLane(setup, lane);
    lanes.set(lane, started);
    return started;
  };
  const stop = async () => {
    await Promise.all([...lanes.values()].map((lane) => lane.stop()));
  };
  const verbsOf = (noun: Noun) =>
    new Proxy(
      {},
      {
        get:
          (_, verb: string) =>
          (...args: unknown[]) =>
            laneFor(laneOf(noun, verb)).ask(noun, verb, args),
      },
    );
  return new Proxy({} as ExperimentsService, {
    get: (_, noun: string) => (noun === "stop" ? stop : verbsOf(noun as Noun)),
  });
}

interface Waiting {
  resolve(answer: Answer<unknown> | AnswerInPieces<unknown>): void;
  reject(error: Error): void;
  /** Those that have come. */
  pieces?: Arriving;
}

/** One thread and the questions that it has not answered yet. */
class ThreadLane {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #next = 0;
  isAlive = true;

  constructor(setup: ThreadSetup, lane: Lane) {
    // The same file with the extension that this module has: .ts in the repository, .js in the package.
    const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
    this.#worker = new Worker(new URL(`./worker-entry${extension}`, import.meta.url), {
      workerData: { ...setup, cache_mb: MEMORY_MB[lane].cache } satisfies LaneSetup,
      name: `experiments-${lane}`,
      resourceLimits: { maxYoungGenerationSizeMb: MEMORY_MB[lane].young, maxOldGenerationSizeMb: OLD_GENERATION_MB },
    });
    this.#worker.on("message", (reply: Reply) => this.#settle(reply));
    this.#worker.on("error", (error) => this.#end(error));
    this.#worker.on("exit", () => this.#end(new Error("The thread of the experiments has ended.")));
  }

  ask(noun: Noun, verb: string, args: unknown[]): Promise<Answer<unknown> | AnswerInPieces<unknown>> {
    const id = this.#next++;
    const { promise, resolve, reject } = Promise.withResolvers<Answer<unknown> | AnswerInPieces<unknown>>();
    this.#waiting.set(id, { resolve, reject });
    this.#worker.postMessage({ id, noun, verb, args } satisfies Request);
    return promise;
  }

  /** Lets it finish what it was asked and close its database. */
  async stop(): Promise<void> {
    if (!this.isAlive) return;
    const ended = once(this.#worker, "exit");
    this.#worker.postMessage("stop");
    await ended;
  }

  #settle(reply: Reply): void {
    const waiting = this.#waiting.get(reply.id);
    if (!waiting) return;
    if (!("piece" in reply)) this.#waiting.delete(reply.id);
    if ("piece" in reply) take(waiting, reply.piece);
    else if ("isWhole" in reply) waiting.pieces?.end();
    else if ("json" in reply) waiting.resolve(answerOf(reply.json ?? "null"));
    else fail(waiting, errorOf(reply));
  }

  #end(error: unknown): void {
    this.isAlive = false;
    const reason = new ApiError("unavailable", { reason: "The experiments had to be started anew. Try again." }, error);
    for (const waiting of this.#waiting.values()) fail(waiting, reason);
    this.#waiting.clear();
  }
}

function take(waiting: Waiting, piece: string): void {
  if (!waiting.pieces) {
    waiting.pieces = new Arriving();
    waiting.resolve(inPieces(waiting.pieces));
  }
  waiting.pieces.push(piece);
}

function fail({ reject, pieces }: Waiting, error: Error): void {
  pieces?.end(error);
  reject(error);
}

function errorOf(reply: Exclude<Reply, { json: unknown } | { piece: string } | { isWhole: true }>): Error {
  if ("api" in reply) return ApiError.of(reply.api.code, reply.api.message);
  if ("invalid" in reply) return new InvalidRequestError(reply.invalid);
  return Object.assign(new Error(reply.failed.message), reply.failed);
}

const answerOf = (json: string): Answer<unknown> => ({ json, value: () => JSON.parse(json) });

const inPieces = (pieces: AsyncIterable<string>): AnswerInPieces<unknown> => ({
  pieces,
  async value() {
    let json = "";
    for await (const piece of pieces) json += piece;
    return JSON.parse(json);
  },
});
