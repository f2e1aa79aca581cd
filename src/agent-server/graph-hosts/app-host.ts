import type { AuthUser } from "../../platform/contract/caller.ts";
import { ApiError } from "../../platform/errors.ts";
import type { Log } from "../../platform/lib/log.ts";
import { FetchResponses, fetchByMessages, requestOf } from "./fetch-exchange.ts";
import type { HostRequest, HostSetup, StartHost } from "./host.ts";
import type { AppRoutes, FetchRequest } from "./host-http.ts";
import { GraphQueryError, QueryHost } from "./query-host.ts";

/** Requests that the app may send while it responds to a request, and the authenticated user of that request. */
export interface AppSender {
  user: AuthUser | undefined;
  /** Sends a request of the app to this server, on behalf of the caller of the request that the app responds to. */
  fetch(request: Request): Promise<Response>;
  /** Passes the request on to the routes of this server. */
  next(request: Request): Promise<Response>;
}

export interface AppHostOptions {
  startHost: StartHost;
  setup: () => HostSetup;
  /** The host is terminated when it does not respond to a check for this long. */
  timeout_ms: number;
  /** The time that a host may take to start, in addition. */
  start_timeout_ms: number;
  log: Log;
}

/** While requests are open, the host is checked at this interval: a route may wait without limit, but must not block its host. */
const CHECK_INTERVAL_MS = 5_000;

interface OpenRequest {
  sender: AppSender;
  body: ReadableStreamDefaultReader<Uint8Array> | undefined;
}

/** A host of the app, and its successors after crashes. A reload starts a new generation. */
interface Generation {
  host: QueryHost;
  routes: Promise<AppRoutes>;
  open: Map<number, OpenRequest>;
  responses: FetchResponses;
}

/** The HTTP app of the project (`http.app`) in a graph host of its own. */
export class AppHost {
  readonly #options: AppHostOptions;
  readonly #generations = new Set<Generation>();
  #started: Generation | undefined;
  #last_id = 0;

  constructor(options: AppHostOptions) {
    this.#options = options;
  }

  /** Starts the host, which the first request otherwise does. */
  start(): void {
    this.#started ??= this.#start();
  }

  get #current(): Generation {
    this.#started ??= this.#start();
    return this.#started;
  }

  /** The routes that the app declares; null if it declares none. Rejects with an ApiError if the app could not be loaded. */
  get routes(): Promise<AppRoutes> {
    return this.#current.routes;
  }

  /** The reason why the app could not be loaded, or undefined. */
  get loadFailure(): Promise<string | undefined> {
    return this.routes.then(
      () => undefined,
      ({ cause }: ApiError) => (cause as Error).message,
    );
  }

  /** Loads the app again. Open requests complete in the old host. */
  async reload(): Promise<void> {
    const old = this.#current;
    const next = this.#start();
    await next.routes.catch(() => undefined);
    this.#started = next;
    await this.#endIfUnused(old);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#generations].map(({ host }) => host.stop()));
  }

  /** Stops the host of a previous generation when it has no open requests. */
  async #endIfUnused(generation: Generation): Promise<void> {
    if (generation === this.#current || generation.open.size > 0) return;
    this.#generations.delete(generation);
    await generation.host.stop();
  }

  /**
   * Returns the response of the app.
   *
   * @param url the URL of the request, without the prefix under which the service is mounted
   * @throws ApiError app_failed if the app could not be loaded or its host ends
   */
  async fetch(request: Request, url: URL, sender: AppSender): Promise<Response> {
    await this.#current.routes;
    const generation = this.#current;
    const { host, open, responses } = generation;
    const id = ++this.#last_id;
    open.set(id, { sender, body: request.body?.getReader() });
    const check = setInterval(() => host.query({ kind: "app_routes" }).catch(() => undefined), CHECK_INTERVAL_MS);
    const onEnd = () => {
      clearInterval(check);
      open.delete(id);
      void this.#endIfUnused(generation);
    };
    const { method, headers } = request;
    const message = { op: "fetch" as const, id, method, path: url.pathname + url.search, headers: [...headers] };
    const user = sender.user && JSON.stringify(sender.user);
    const target = { origin: url.origin, has_body: request.body !== null, user };
    const send = (sent: FetchRequest) =>
      // A response, or its next chunk, may take any amount of time.
      host.query({ kind: "app", ...target, request: sent }, Number.POSITIVE_INFINITY).catch((error) => {
        if (isHostLost(error)) responses.cancelAll();
        throw error;
      });
    try {
      const response = await fetchByMessages(message, request.signal, send, onEnd);
      if (method !== "HEAD" || !response.body) return response;
      // Hono drops the body of a response to HEAD without reading or cancelling it.
      await response.body.cancel();
      return new Response(null, response);
    } catch (error) {
      if (isHostLost(error)) throw new ApiError("app_failed", { reason: "Its graph host ended." }, error);
      throw error;
    }
  }

  #start(): Generation {
    const { setup, ...options } = this.#options;
    const open = new Map<number, OpenRequest>();
    const responses = new FetchResponses();
    const onRequest = (request: HostRequest) => answer(request, open, responses);
    const host = new QueryHost({ ...options, setup: () => ({ ...setup(), graphs: [] }), onRequest });
    const routes = host.query({ kind: "app_routes" }).catch((error) => {
      const reason = `It could not be loaded: ${(error as Error).message}`;
      throw new ApiError("app_failed", { reason }, error);
    });
    // Prevents an unhandled rejection: each request reports the error, too.
    routes.catch(() => undefined);
    const generation = { host, routes, open, responses };
    this.#generations.add(generation);
    return generation;
  }
}

const isHostLost = (error: unknown): boolean => error instanceof GraphQueryError && error.kind === "GraphHostError";

/** Answers a request of the app to the service. */
async function answer(
  request: HostRequest,
  open: ReadonlyMap<number, OpenRequest>,
  responses: FetchResponses,
): Promise<unknown> {
  switch (request.op) {
    case "app_body":
      return (await requireOpen(open, request.id).body?.read())?.value;
    case "app_fetch": {
      const { sender } = requireOpen(open, request.id);
      const send = request.is_next ? sender.next : sender.fetch;
      return responses.start(request.request.id, (signal) => send(requestOf(request.request, signal)));
    }
    case "fetch_read":
      return responses.read(request.id);
    case "fetch_cancel":
      return responses.cancel(request.id);
    default:
      throw new Error(
        "Checkpoints, the store and OAuth tokens are available only in runs. In the HTTP app, call this server with an SDK client that is created without a URL.",
      );
  }
}

function requireOpen(open: ReadonlyMap<number, OpenRequest>, id: number): OpenRequest {
  const found = open.get(id);
  if (!found) throw new Error("The request has ended: its response is complete, or its client has disconnected.");
  return found;
}
