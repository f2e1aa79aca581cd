import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { ApiError, type ErrorCode, type InvalidPart, InvalidRequestError } from "../errors.ts";
import { type Lane, laneOf, type Noun } from "./lanes.ts";
import type { Operations } from "./operations.ts";

/** V8 would take up to 100 MB for it and never give it back (see src/graphs/hosts/thread.ts). */
const YOUNG_GENERATION_MB = 24;

/** How a lane opens its database. Plain data: it is handed to a thread. */
export interface ThreadSetup {
  database: { file: string; synchronous: "full" | "normal" } | { url: string };
  log_level: string;
}

/** What a thread is asked, and what it answers. */
export interface Request {
  id: number;
  noun: Noun;
  verb: string;
  args: unknown[];
}

export type Reply = { id: number } & (
  | { json: string | undefined }
  | { api: { code: ErrorCode; message: string } }
  | { invalid: InvalidPart[] }
  | { failed: { message: string; stack: string | undefined; code: string | undefined } }
);

/** An answer as the JSON text that goes to the client: the serving thread does not look into it. */
export interface Answer<T> {
  json: string;
  value(): T;
}

type Verbs<O> = {
  [V in keyof O]: O[V] extends (...args: infer A) => Promise<infer R> ? (...args: A) => Promise<Answer<R>> : never;
};

/** The operations of experiments, carried out in other threads. */
export type ExperimentsService = { [N in Noun]: Verbs<Operations[N]> } & { stop(): Promise<void> };

/** Starts nothing yet: each lane's thread begins when it is first asked, because most services take no uploads. */
export function experimentThreads(setup: ThreadSetup): ExperimentsService {
  const lanes = new Map<Lane, ThreadLane>();
  const laneFor = (lane: Lane): ThreadLane => {
    const known = lanes.get(lane);
    if (known?.isAlive) return known;
    const started = new ThreadLane(setup);
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
  resolve(answer: Answer<unknown>): void;
  reject(error: Error): void;
}

/** One thread and the questions that it has not answered yet. */
class ThreadLane {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #next = 0;
  isAlive = true;

  constructor(setup: ThreadSetup) {
    // The same file with the extension that this module has: .ts in the repository, .js in the package.
    const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
    this.#worker = new Worker(new URL(`./thread-entry${extension}`, import.meta.url), {
      workerData: setup,
      name: "experiments",
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    });
    this.#worker.on("message", (reply: Reply) => this.#settle(reply));
    this.#worker.on("error", (error) => this.#end(error));
    this.#worker.on("exit", () => this.#end(new Error("The thread of the experiments has ended.")));
  }

  ask(noun: Noun, verb: string, args: unknown[]): Promise<Answer<unknown>> {
    const id = this.#next++;
    const answer = new Promise<Answer<unknown>>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    this.#worker.postMessage({ id, noun, verb, args } satisfies Request);
    return answer;
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
    this.#waiting.delete(reply.id);
    if (!waiting) return;
    if ("json" in reply) waiting.resolve(answerOf(reply.json ?? "null"));
    else if ("api" in reply) waiting.reject(ApiError.of(reply.api.code, reply.api.message));
    else if ("invalid" in reply) waiting.reject(new InvalidRequestError(reply.invalid));
    else waiting.reject(Object.assign(new Error(reply.failed.message), reply.failed));
  }

  #end(error: unknown): void {
    this.isAlive = false;
    const reason = new ApiError("unavailable", { reason: "The experiments had to be started anew. Try again." }, error);
    for (const { reject } of this.#waiting.values()) reject(reason);
    this.#waiting.clear();
  }
}

const answerOf = (json: string): Answer<unknown> => ({ json, value: () => JSON.parse(json) });
