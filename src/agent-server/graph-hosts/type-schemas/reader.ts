import type { Log } from "../../../platform/lib/log.ts";
import { WorkerRpc } from "../../../platform/lib/worker-rpc.ts";
import type { GraphToLoad } from "../host.ts";
import { type CachedSchemas, hashOfFile, SchemaCache, type TypeSchemas } from "./cache.ts";

export interface TypeSchemaReaderOptions {
  /** The folder of tsconfig.json. */
  project_dir: string;
  /** Timeout of one extraction, including the start of the worker thread. */
  timeout_ms: number;
  /** Folder in which results are cached, in addition to memory. */
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
  failure?: string;
  /** See {@link CachedSchemas}; absent if the result must not be cached. */
  files?: CachedSchemas["files"];
}

export type ExtractionOperations = { extract(request: ExtractionRequest): Extraction };

const SOURCE = /\.[cm]?[jt]sx?$/;

/**
 * Extracts the schemas of graphs from their TypeScript types. The compiler runs in a worker thread, which runs only while extractions are
 * pending and executes no code of the project.
 */
export class TypeSchemaReader {
  readonly #options: TypeSchemaReaderOptions;
  readonly #cache: SchemaCache;
  readonly #reads = new Map<string, Promise<TypeSchemas | undefined>>();
  readonly #worker = new WorkerRpc<ExtractionOperations>({
    entry: new URL("./worker-entry", import.meta.url),
    name: "type schemas",
    // Measured: 120 MB of heap. Projects with large dependencies need more.
    resourceLimits: { maxOldGenerationSizeMb: 1024, maxYoungGenerationSizeMb: 32 },
  });
  /** Extractions run one at a time: each uses a whole core. */
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #stopped = false;

  constructor(options: TypeSchemaReaderOptions) {
    this.#options = options;
    this.#cache = new SchemaCache(options.cache_dir);
  }

  /** Returns undefined if the file is not TypeScript or JavaScript, if the export is missing, or if the extraction fails (logged). */
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

  /** Ends running extractions; their reads return undefined. */
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
    if (failure) this.#options.log?.debug({ file, export_name, reason: failure }, "cannot extract schemas from types");
    if (files) {
      await this.#cache.keep(key, { files, schemas: schemas ?? null }).catch((error: Error) => {
        this.#options.log?.debug({ reason: error.message }, "storing extracted schemas failed");
      });
    } else if (failure) {
      // Cached until the file changes: otherwise a timeout would repeat at each request.
      this.#cache.keepInMemory(key, { files: { [file]: hash }, schemas: null });
    }
    return schemas;
  }

  #enqueue(request: ExtractionRequest): Promise<Extraction> {
    this.#waiting++;
    const extraction = this.#last.then(() => this.#extract(request));
    this.#last = extraction.then(async () => {
      if (--this.#waiting === 0) await this.#worker.reset(new Error("no extraction is pending"));
    });
    return extraction;
  }

  async #extract(request: ExtractionRequest): Promise<Extraction> {
    if (this.#stopped) return { failure: "stopped" };
    const { timeout_ms } = this.#options;
    const timer = setTimeout(
      () => this.#worker.reset(new Error(`the extraction took longer than ${timeout_ms} ms`)),
      timeout_ms,
    );
    try {
      return await this.#worker.call("extract", [request]);
    } catch (error) {
      return { failure: (error as Error).message };
    } finally {
      clearTimeout(timer);
    }
  }
}
