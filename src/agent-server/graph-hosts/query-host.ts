import { toHostError } from "../../platform/database/database-errors.ts";
import type { Log } from "../../platform/lib/log.ts";
import type {
  FromHost,
  GraphHost,
  GraphQuery,
  GraphSchemas,
  HistoryPage,
  HostRequest,
  HostSetup,
  StagedUpdate,
  StartHost,
  StateSummary,
} from "./host.ts";

export interface QueryHostOptions {
  startHost: StartHost;
  setup: () => HostSetup;
  onRequest(request: HostRequest): Promise<unknown>;
  /** The host is terminated when a query takes longer. */
  timeout_ms: number;
  log: Log;
}

/** A graph failed to run a query. */
export class GraphQueryError extends Error {
  /** Class name of the error that the graph's code threw. */
  readonly kind: string;
  constructor(kind: string, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Strings are JSON text. */
interface Results {
  state: string;
  summary: StateSummary;
  history: HistoryPage;
  update: StagedUpdate;
  drawing: string;
  schemas: GraphSchemas;
  subgraphs: Record<string, GraphSchemas>;
}

/** The graph host for queries. The first query starts it. */
export class QueryHost {
  readonly #options: QueryHostOptions;
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();
  #host: GraphHost | undefined;
  #nextId = 1;

  constructor(options: QueryHostOptions) {
    this.#options = options;
  }

  /** @throws GraphQueryError when the graph fails or the query times out */
  query<Q extends GraphQuery>(query: Q): Promise<Results[Q["kind"]]> {
    this.#host ??= this.#start();
    const id = this.#nextId++;
    const result = Promise.withResolvers<unknown>();
    const { timeout_ms } = this.#options;
    const timer = setTimeout(
      () => this.#discard(`The graph host did not answer within ${timeout_ms} ms and was terminated.`),
      timeout_ms,
    );
    this.#pending.set(id, result);
    this.#host.send({ type: "query", id, query });
    return result.promise.finally(() => clearTimeout(timer)) as Promise<Results[Q["kind"]]>;
  }

  /** The next query starts a new host. The old host completes the pending queries. */
  reload(): void {
    const old = this.#host;
    this.#host = undefined;
    setTimeout(() => void old?.terminate(), this.#options.timeout_ms).unref();
  }

  async stop(): Promise<void> {
    await this.#host?.terminate();
    this.#host = undefined;
  }

  #start(): GraphHost {
    const host = this.#options.startHost(this.#options.setup(), {
      onMessage: (message) => this.#receive(host, message),
      onExit: (reason) => this.#discard(`The graph host exited unexpectedly: ${reason}.`),
    });
    return host;
  }

  #receive(host: GraphHost, message: FromHost): void {
    if (message.type === "query_result") {
      const pending = this.#pending.get(message.id);
      this.#pending.delete(message.id);
      if (message.error) pending?.reject(new GraphQueryError(message.error.name, message.error.message));
      else pending?.resolve(message.value);
    } else if (message.type === "log") {
      this.#options.log[message.level](JSON.parse(message.fields), message.message);
    } else if (message.type === "request") {
      const { id, request } = message;
      this.#options.onRequest(request).then(
        (value) => host.send({ type: "reply", id, value }),
        (error: unknown) => host.send({ type: "reply", id, error: toHostError(error) }),
      );
    }
  }

  #discard(reason: string): void {
    this.#options.log.error({ reason }, "query graph host terminated");
    void this.#host?.terminate();
    this.#host = undefined;
    for (const { reject } of this.#pending.values()) reject(new GraphQueryError("GraphHostError", reason));
    this.#pending.clear();
  }
}
