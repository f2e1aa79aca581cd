import { maxConnections } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { WorkerRpc } from "../../platform/lib/worker-rpc.ts";
import type { JsonPieces } from "../json-pieces.ts";
import type { SpanExportOptions } from "../traces/otlp/span-export.ts";
import { OPERATION_WORKERS, type WorkerName } from "./operation-workers.ts";
import type { Operations } from "./operations.ts";

/**
 * `young`: V8 would use up to 100 MB for the young generation and never release it. A 3 MB response causes 1.3 collections with 48 MB and
 * 2.6 with 24 MB. `old`: the size of the old generation at which V8 first collects the whole heap, which it otherwise does in every fifth
 * such response. `cache`: SQLite does not reread the pages that an upload writes, so 8 MB are as fast as 32 MB.
 */
const MEMORY_MB: Record<WorkerName, { young: number; old?: number; cache: number }> = {
  read: { young: 48, old: 64, cache: 32 },
  write: { young: 24, cache: 8 },
  compute: { young: 24, cache: 32 },
  ingest: { young: 24, cache: 16 },
};

/** With this limit V8 collects earlier: an upload of 30 MB uses 100 MB instead of 230 MB at the same speed. A row of 150 MB fits. */
const OLD_GENERATION_MB = 1024;

/** A worker executes few calls concurrently, and connections must remain for the agent server. */
const POOL_SIZE = 4;

/** Connections to Postgres when the worker that stores traces is in use, and when all workers are. */
export const TRACE_CONNECTIONS = maxConnections(POOL_SIZE);
export const EXPERIMENT_CONNECTIONS = Object.keys(MEMORY_MB).length * TRACE_CONNECTIONS;

export interface ExperimentsOptions {
  database: { file: string; synchronous: "full" | "normal" } | { url: string; pooler_url: string | undefined };
  log_level: string;
  /** Undefined if traces are not exported. */
  span_export: SpanExportOptions | undefined;
}

export type WorkerOptions = ExperimentsOptions & { worker: WorkerName; cache_mb: number; pool_size: number };

/** The operations as a worker serves them, by `group.name`: the result is JSON text, a generator of its pieces, or bytes. */
export type JsonOperations = Record<string, (...args: unknown[]) => Promise<string | Generator<string> | Uint8Array>>;

/** A result as JSON text, which the serving thread sends without parsing it. */
interface Answer<T> {
  json: string;
  value(): T;
}

/** The JSON text of a long list in pieces. An invalid request fails before the first piece. */
interface AnswerInPieces<T> {
  pieces: AsyncIterable<string>;
  value(): Promise<T>;
}

type Remote<Group> = {
  [Name in keyof Group]: Group[Name] extends (...args: infer A) => Promise<infer R>
    ? (
        ...args: A
      ) => Promise<R extends JsonPieces<infer Item> ? AnswerInPieces<Item[]> : R extends Uint8Array ? R : Answer<R>>
    : never;
};

/** The operations of experiments, executed in worker threads. */
export type ExperimentsService = { [Group in keyof Operations]: Remote<Operations[Group]> } & { stop(): Promise<void> };

/** Each worker starts with its first call, because most services take no uploads. */
export function createExperimentsService(options: ExperimentsOptions): ExperimentsService {
  const workers: Record<WorkerName, WorkerRpc<JsonOperations>> = {
    read: createWorker("read", options),
    write: createWorker("write", options),
    compute: createWorker("compute", options),
    ingest: createWorker("ingest", options),
  };
  const groups = Object.entries(OPERATION_WORKERS).map(([group, operations]) => {
    const remote = Object.entries(operations).map(([name, worker]: [string, WorkerName]) => {
      const call = async (...args: unknown[]) =>
        answerOf(await workers[worker].call(`${group}.${name}`, args, args.flatMap(ownBuffer)));
      return [name, call] as const;
    });
    return [group, Object.fromEntries(remote)] as const;
  });
  const stop = async () => {
    await Promise.all(Object.values(workers).map((worker) => worker.stop()));
  };
  return { ...Object.fromEntries(groups), stop } as unknown as ExperimentsService;
}

/** The buffer of an argument, if nothing else uses it. It is transferred to the worker instead of copied. */
const ownBuffer = (arg: unknown): ArrayBuffer[] =>
  arg instanceof Uint8Array && arg.byteLength === arg.buffer.byteLength ? [arg.buffer as ArrayBuffer] : [];

const createWorker = (worker: WorkerName, options: ExperimentsOptions): WorkerRpc<JsonOperations> =>
  new WorkerRpc({
    entry: new URL("./worker-entry", import.meta.url),
    name: `experiments-${worker}`,
    workerData: {
      ...options,
      worker,
      cache_mb: MEMORY_MB[worker].cache,
      pool_size: POOL_SIZE,
    } satisfies WorkerOptions,
    resourceLimits: { maxYoungGenerationSizeMb: MEMORY_MB[worker].young, maxOldGenerationSizeMb: OLD_GENERATION_MB },
    initial_mb: { semi_space: MEMORY_MB[worker].young / 3, old_space: MEMORY_MB[worker].old ?? 0 },
    lostError: (cause) =>
      new ApiError(
        "unavailable",
        { reason: "The worker thread for experiments exited unexpectedly. Try again." },
        cause,
      ),
  });

function answerOf(
  result: string | AsyncIterable<string> | Uint8Array,
): Answer<unknown> | AnswerInPieces<unknown> | Uint8Array {
  if (result instanceof Uint8Array) return result;
  if (typeof result === "string") return { json: result, value: () => JSON.parse(result) };
  return {
    pieces: result,
    async value() {
      let json = "";
      for await (const piece of result) json += piece;
      return JSON.parse(json);
    },
  };
}
