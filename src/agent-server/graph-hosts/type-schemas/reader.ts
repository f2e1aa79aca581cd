import { once } from "node:events";
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { Log } from "../../../platform/lib/log.ts";
import type { GraphToLoad } from "../host.ts";
import { hashOfFile, SchemaCache, type TypeSchemas } from "./cache.ts";

export interface TypeSchemaReaderOptions {
  /** Where tsconfig.json is. */
  project_dir: string;
  /** Of one extraction, with the start of the worker thread. An extraction that takes longer is ended. */
  timeout_ms: number;
  /** Where results outlive the process. Absent: they are kept in memory. */
  cache_dir?: string;
  log?: Pick<Log, "debug">;
}

export interface ExtractionRequest {
  file: string;
  export_name: string;
  project_dir: string;
}

export interface Extraction {
  schemas?: TypeSchemas;
  /** Why there are no schemas. */
  failure?: string;
  /** What the result depends on (see CachedSchemas); absent when it may not be kept. */
  files?: Record<string, string>;
}

/** What the compiler reads. */
const SOURCE = /\.[cm]?[jt]sx?$/;

/** Measured: 120 MB of heap. The rest is for projects with large dependencies. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 1024, maxYoungGenerationSizeMb: 32 };

/**
 * Reads the schemas of graphs off their TypeScript types. The compiler runs in a worker thread, which executes nothing of the
 * project; it is started when a result is not in the cache, and ended when no more are wanted.
 */
export class TypeSchemaReader {
  readonly #options: TypeSchemaReaderOptions;
  readonly #cache: SchemaCache;
  readonly #reads = new Map<string, Promise<TypeSchemas | undefined>>();
  #worker: Worker | undefined;
  /** One extraction at a time: each takes a core. */
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #stopped = false;

  constructor(options: TypeSchemaReaderOptions) {
    this.#options = options;
    this.#cache = new SchemaCache(options.cache_dir);
  }

  /**
   * @returns undefined when the file is not TypeScript or JavaScript, has no such export, or the extraction failed or took too
   *   long (the reason is logged)
   */
  read({ file, export_name }: Pick<GraphToLoad, "file" | "export_name">): Promise<TypeSchemas | undefined> {
    const { project_dir } = this.#options;
    if (!SOURCE.test(file)) return Promise.resolve(undefined);
    const key = JSON.stringify([project_dir, file, export_name]);
    const read =
      this.#reads.get(key) ??
      this.#read(key, { file, export_name, project_dir }).finally(() => this.#reads.delete(key));
    this.#reads.set(key, read);
    return read;
  }

  /** Extractions that are under way are ended, and their reads answered with undefined. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#endWorker();
    await this.#last;
  }

  async #read(key: string, request: ExtractionRequest): Promise<TypeSchemas | undefined> {
    const cached = await this.#cache.find(key);
    if (cached) return cached.schemas ?? undefined;
    const { file, export_name } = request;
    const hash = await hashOfFile(file);
    const { schemas, failure, files } = await this.#enqueue(request);
    if (this.#stopped) return schemas;
    if (failure) this.#options.log?.debug({ file, export_name, reason: failure }, "no schemas extracted from types");
    if (files) {
      await this.#cache.keep(key, { files, schemas: schemas ?? null }).catch((error: Error) => {
        this.#options.log?.debug({ reason: error.message }, "extracted schemas not stored");
      });
    } else if (failure) {
      // Until the file changes: what took too long would do so at each request.
      this.#cache.keepInMemory(key, { files: { [file]: hash }, schemas: null });
    }
    return schemas;
  }

  #enqueue(request: ExtractionRequest): Promise<Extraction> {
    this.#waiting++;
    const extraction = this.#last.then(() => this.#extract(request));
    this.#last = extraction.then(async () => {
      if (--this.#waiting === 0) await this.#endWorker();
    });
    return extraction;
  }

  async #extract(request: ExtractionRequest): Promise<Extraction> {
    if (this.#stopped) return { failure: "stopped" };
    this.#worker ??= startWorker();
    const worker = this.#worker;
    const { timeout_ms } = this.#options;
    const ended = new AbortController();
    const timer = setTimeout(() => ended.abort(), timeout_ms);
    try {
      worker.postMessage(request);
      const exit = once(worker, "exit", ended).then(() => [{ failure: "the worker thread ended" }]);
      const [extraction] = await Promise.race([once(worker, "message", ended), exit]);
      return extraction;
    } catch (error) {
      await this.#endWorker();
      return { failure: ended.signal.aborted ? `took longer than ${timeout_ms} ms` : (error as Error).message };
    } finally {
      clearTimeout(timer);
      ended.abort();
    }
  }

  async #endWorker(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }
}

function startWorker(): Worker {
  // The same extension that this module has: .ts in the repository, .js in the package.
  const entry = new URL(`./worker-entry${extname(import.meta.url)}`, import.meta.url);
  const worker = new Worker(entry, { resourceLimits: RESOURCE_LIMITS, name: "type schemas" });
  // An error after the last answer, which nothing waits for.
  worker.on("error", () => {});
  return worker;
}
