import type { Log } from "../../../platform/lib/log.ts";
import { WorkerRpc } from "../../../platform/lib/worker-rpc.ts";
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

/** The operations of worker-entry.ts. */
export type ExtractionOperations = { extract(request: ExtractionRequest): Extraction };

/** What the compiler reads. */
const SOURCE = /\.[cm]?[jt]sx?$/;

/**
 * Reads the schemas of graphs off their TypeScript types. The compiler runs in a worker thread, which executes nothing of the
 * project; it is started when a result is not in the cache, and ended when no more are wanted.
 */
export class TypeSchemaReader {
  readonly #options: TypeSchemaReaderOptions;
  readonly #cache: SchemaCache;
  readonly #reads = new Map<string, Promise<TypeSchemas | undefined>>();
  readonly #worker = new WorkerRpc<ExtractionOperations>({
    entry: new URL("./worker-entry", import.meta.url),
    name: "type schemas",
    // Measured: 120 MB of heap. The rest is for projects with large dependencies.
    resourceLimits: { maxOldGenerationSizeMb: 1024, maxYoungGenerationSizeMb: 32 },
  });
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
    await this.#worker.terminate();
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
      if (--this.#waiting === 0) await this.#worker.reset(new Error("there are no more extractions"));
    });
    return extraction;
  }

  async #extract(request: ExtractionRequest): Promise<Extraction> {
    if (this.#stopped) return { failure: "stopped" };
    const { timeout_ms } = this.#options;
    const timer = setTimeout(() => this.#worker.reset(new Error(`took longer than ${timeout_ms} ms`)), timeout_ms);
    try {
      return await this.#worker.call("extract", [request]);
    } catch (error) {
      return { failure: (error as Error).message };
    } finally {
      clearTimeout(timer);
    }
  }
}
