import { DatabaseUnavailableError, toHostError } from "../../platform/database/database-errors.ts";
import { ApiError } from "../../platform/errors.ts";
import type { Log } from "../../platform/lib/log.ts";
import type { AuthDecision, AuthQuery, AuthRefusal } from "./auth-queries.ts";
import type { EncryptionQuery, EncryptionResults } from "./encryption-queries.ts";
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
import type { AppQuery, AppRoutes, FetchAnswer } from "./host-http.ts";
import type { EmbedQuery } from "./host-store.ts";

export interface QueryHostOptions {
  startHost: StartHost;
  setup: () => HostSetup;
  onRequest(request: HostRequest): Promise<unknown>;
  /** A query that takes longer fails. The time counts from when the host has loaded its modules. */
  timeout_ms: number;
  /** After a timeout, the host is terminated if it does not respond within this time. Default: it is terminated immediately. */
  ping_timeout_ms?: number;
  /** The time that a host may take to start, during which queries do not time out. Default: 0. */
  start_timeout_ms?: number;
  log: Log;
}

/** A query failed in its graph host, timed out, or lost its host. */
export class GraphQueryError extends Error {
  /** Class name of the error in the host; TimeoutError after a timeout, GraphHostError if the host has ended. */
  readonly kind: string;
  constructor(kind: string, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Converts an error of a query to the error for callers. */
export function queryFailure(error: unknown): unknown {
  if (!(error instanceof GraphQueryError)) return error;
  if (error.kind === DatabaseUnavailableError.name) return new DatabaseUnavailableError(error.message);
  if (error.kind === "GraphHostError")
    return new ApiError("unavailable", { reason: `The graph could not process the request. ${error.message}` }, error);
  return new ApiError("graph_failed", { reason: `${error.kind}: ${error.message}` }, error);
}

/** The result of each kind of query. Results of type string are JSON text. */
interface Results extends EncryptionResults {
  app: FetchAnswer | Uint8Array | undefined;
  app_routes: AppRoutes;
  embed: Float32Array;
  auth_handlers: string[];
  authenticate: { user: string } | AuthRefusal;
  authorize: AuthDecision | AuthRefusal;
  state: string;
  summary: StateSummary;
  history: HistoryPage;
  update: StagedUpdate;
  drawing: string;
  schemas: GraphSchemas;
  subgraphs: Record<string, GraphSchemas>;
}

interface PendingQuery extends PromiseWithResolvers<unknown> {
  host: GraphHost;
  timer: NodeJS.Timeout | undefined;
}

/** The graph host for queries. The first query starts it. */
export class QueryHost {
  readonly #options: QueryHostOptions;
  readonly #pending = new Map<number, PendingQuery>();
  #host: GraphHost | undefined;
  #nextId = 1;
  readonly #pings = new Map<GraphHost, NodeJS.Timeout>();
  /** The hosts that have not loaded their modules yet, and when they were started. */
  readonly #starting = new Map<GraphHost, number>();

  constructor(options: QueryHostOptions) {
    this.#options = options;
  }

  /** @throws GraphQueryError when the graph fails or the query times out */
  query<Q extends GraphQuery | EmbedQuery | AppQuery | AuthQuery | EncryptionQuery>(
    query: Q,
    timeout_ms = this.#options.timeout_ms,
  ): Promise<Results[Q["kind"]]> {
    this.#host ??= this.#start();
    const host = this.#host;
    const id = this.#nextId++;
    const result = Promise.withResolvers<unknown>();
    const timer =
      timeout_ms === Number.POSITIVE_INFINITY
        ? undefined
        : setTimeout(() => this.#onTimeout(id, timeout_ms), timeout_ms);
    this.#pending.set(id, { ...result, host, timer });
    host.send({ type: "query", id, query });
    return result.promise.finally(() => clearTimeout(timer)) as Promise<Results[Q["kind"]]>;
  }

  /** The next query starts a new host. The old host completes the pending queries. */
  reload(): void {
    const old = this.#host;
    this.#host = undefined;
    setTimeout(() => void old?.terminate(), this.#options.timeout_ms).unref();
  }

  async stop(): Promise<void> {
    for (const host of this.#pings.keys()) this.#clearPing(host);
    await this.#host?.terminate();
    this.#host = undefined;
  }

  /** With `ping_timeout_ms`, a query that never ends does not affect others, unless it blocks the host. */
  #onTimeout(id: number, timeout_ms: number): void {
    const { ping_timeout_ms, start_timeout_ms = 0 } = this.#options;
    const pending = this.#pending.get(id);
    if (!pending) return;
    // After a reload, the query may be in the old host.
    const { host, timer } = pending;
    const started_at = this.#starting.get(host);
    if (started_at !== undefined && performance.now() - started_at < start_timeout_ms) {
      timer?.refresh();
      return;
    }
    const terminate = () =>
      this.#discard(host, `The graph host did not respond within ${timeout_ms} ms and was terminated.`);
    if (ping_timeout_ms === undefined) {
      terminate();
      return;
    }
    host.send({ type: "ping", id });
    if (!this.#pings.has(host)) this.#pings.set(host, setTimeout(terminate, ping_timeout_ms));
  }

  #start(): GraphHost {
    const host = this.#options.startHost(this.#options.setup(), {
      onMessage: (message) => this.#receive(host, message),
      onExit: (reason) => this.#discard(host, `The graph host exited unexpectedly: ${reason}.`),
    });
    this.#starting.set(host, performance.now());
    return host;
  }

  #receive(host: GraphHost, message: FromHost): void {
    if (message.type === "loaded") {
      this.#starting.delete(host);
      // A query starts only now.
      for (const { host: of, timer } of this.#pending.values()) if (of === host) timer?.refresh();
    } else if (message.type === "query_result") {
      const pending = this.#settle(message.id);
      if (message.error) pending?.reject(new GraphQueryError(message.error.name, message.error.message));
      else pending?.resolve(message.value);
    } else if (message.type === "pong") {
      this.#clearPing(host);
      const { timeout_ms } = this.#options;
      this.#settle(message.id)?.reject(
        new GraphQueryError("TimeoutError", `The query took longer than ${timeout_ms} ms.`),
      );
      if ((message.oldest_call_ms ?? 0) > timeout_ms / 2)
        this.#discard(host, `A synchronous handler has been executing for more than ${timeout_ms / 2} ms.`);
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

  #settle(id: number): PendingQuery | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }

  #clearPing(host: GraphHost): void {
    clearTimeout(this.#pings.get(host));
    this.#pings.delete(host);
  }

  #discard(host: GraphHost, reason: string): void {
    this.#clearPing(host);
    this.#starting.delete(host);
    this.#options.log.error({ reason }, "query graph host terminated");
    void host.terminate();
    if (this.#host === host) this.#host = undefined;
    for (const [id, pending] of this.#pending) {
      if (pending.host !== host) continue;
      this.#pending.delete(id);
      pending.reject(new GraphQueryError("GraphHostError", reason));
    }
  }
}
