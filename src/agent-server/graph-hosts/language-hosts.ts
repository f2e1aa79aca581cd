import type { BackgroundService } from "../../platform/lib/background-service.ts";
import type { AuthQuery } from "./auth-queries.ts";
import type { Language } from "./checkpoint-requests.ts";
import type { EncryptionQuery } from "./encryption-queries.ts";
import type { GraphQuery, RunEpoch, RunOrder, StartHost, ToHost } from "./host.ts";
import type { AppQuery } from "./host-http.ts";
import type { EmbedQuery } from "./host-store.ts";
import { languageOfFile, setupOf, usedBy } from "./languages.ts";
import { HostPool, type PooledHost, type PoolListener, type PoolOptions } from "./pool.ts";
import { QueryHost, type QueryHostOptions } from "./query-host.ts";

/** What starts the graph hosts of a language. */
export interface LanguageHosts {
  startHost: StartHost;
  /** Starts the host of one run that may have ended a host or processes. */
  startIsolated: StartHost;
  /** Starts the host that reads states. */
  startReader: StartHost;
  /** Number of hosts for runs. */
  hosts: number;
}

export type HostsByLanguage = Readonly<Record<Language, LanguageHosts>>;

/** The free slots of the hosts of a language. */
export interface Capacity {
  limit: number;
  /** Limits the claim to runs of these graphs, or to those of other graphs. Undefined if the project has graphs of one language. */
  graphs?: { ids: readonly string[]; are: "only" | "excluded" };
}

type Options = Omit<PoolOptions, "startHost" | "startIsolated" | "size"> & { languages: HostsByLanguage };

/** A pool of hosts for each language of the project's graphs. A failure of one language does not keep the other from executing runs. */
export class HostPools implements BackgroundService {
  readonly #options: Options;
  readonly #listener: PoolListener;
  readonly #pools = new Map<Language, HostPool>();
  #isStarted = false;

  constructor(options: Options, listener: PoolListener) {
    this.#options = options;
    this.#listener = listener;
    for (const language of usedBy(options.setup())) this.#add(language);
  }

  start(): void {
    this.#isStarted = true;
    for (const pool of this.#pools.values()) pool.start();
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.stop()));
  }

  /** The load failures by graph id. */
  get loaded(): Promise<Record<string, string>> {
    return failuresOf([...this.#pools.values()].map((pool) => pool.loaded));
  }

  /** The free slots by language; languages without a free slot are missing. */
  capacities(): Capacity[] {
    const ids = this.#options
      .setup()
      .graphs.flatMap(({ graph_id, language }) => (language === "python" ? graph_id : []));
    return [...this.#pools].flatMap(([language, pool]) => {
      const limit = pool.capacity();
      if (limit === 0) return [];
      if (this.#pools.size === 1) return { limit };
      if (ids.length === 0) return language === "js" ? { limit } : [];
      return { limit, graphs: { ids, are: language === "python" ? "only" : "excluded" } };
    });
  }

  /** Undefined for a graph that the project no longer has. */
  languageOf(graph_id: string): Language | undefined {
    return this.#options.setup().graphs.find((graph) => graph.graph_id === graph_id)?.language;
  }

  /** Reserves a slot for a run in the host with the fewest runs. Undefined if no slot is free. */
  reserve(order: RunOrder, options: { isolated: boolean }): PooledHost | undefined {
    return this.#poolOf(order.graph_id)?.reserve(order, options);
  }

  sendToRun(run_id: string, message: ToHost): void {
    for (const pool of this.#pools.values()) pool.sendToRun(run_id, message);
  }

  /** Frees the slot of a run. */
  release(run: RunEpoch, host: PooledHost): void {
    for (const pool of this.#pools.values()) if (pool.has(host)) pool.release(run, host);
  }

  /** Replaces all hosts, so that the graphs are loaded again. Running runs complete in the old hosts. */
  reload(): Promise<Record<string, string>> {
    const loading = [...this.#pools.values()].map((pool) => pool.reload());
    for (const language of usedBy(this.#options.setup())) {
      if (this.#pools.has(language)) continue;
      const pool = this.#add(language);
      if (this.#isStarted) pool.start();
      loading.push(pool.loaded);
    }
    return failuresOf(loading);
  }

  #add(language: Language): HostPool {
    const { languages, setup, ...options } = this.#options;
    const { startHost, startIsolated, hosts: size } = languages[language];
    const started = { startHost, startIsolated, size, setup: () => setupOf(language, setup()) };
    const pool = new HostPool({ ...options, ...started }, this.#listener);
    this.#pools.set(language, pool);
    return pool;
  }

  /** Graphs that the project no longer has fail in any host with their reason. */
  #poolOf(graph_id: string): HostPool | undefined {
    const language = this.languageOf(graph_id);
    const [first] = this.#pools.values();
    return (language && this.#pools.get(language)) ?? first;
  }
}

const failuresOf = async (loading: Promise<Record<string, string>>[]): Promise<Record<string, string>> =>
  Object.assign({}, ...(await Promise.all(loading)));

type ReaderOptions = Omit<QueryHostOptions, "startHost"> & { languages: HostsByLanguage };

/** A host for queries for each language. The first query of a language starts it. */
export class LanguageReaders {
  readonly #options: ReaderOptions;
  readonly #readers = new Map<Language, QueryHost>();

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /** See {@link QueryHost.query}. */
  readonly query: QueryHost["query"] = (query, timeout_ms) => this.#readerFor(query).query(query, timeout_ms);

  reload(): void {
    for (const reader of this.#readers.values()) reader.reload();
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#readers.values()].map((reader) => reader.stop()));
  }

  #readerFor(query: GraphQuery | EmbedQuery | AppQuery | AuthQuery | EncryptionQuery): QueryHost {
    const { languages, setup, ...options } = this.#options;
    const { graphs, embed } = setup();
    const graph = "graph" in query && graphs.find(({ graph_id }) => graph_id === query.graph.graph_id);
    const language = graph ? graph.language : embed && "file" in embed ? languageOfFile(embed.file) : "js";
    const known = this.#readers.get(language);
    if (known) return known;
    const { startReader: startHost } = languages[language];
    const reader = new QueryHost({ ...options, startHost, setup: () => setupOf(language, setup()) });
    this.#readers.set(language, reader);
    return reader;
  }
}
