import { FetchResponses, fetchByMessages } from "../fetch-exchange.ts";
import type { AppQuery, AppRoutes, NewFetch } from "../host-http.ts";
import type { ServiceConnection } from "./connection.ts";

const REQUEST_ID = Symbol("id of the request");

/** A value that `http.app` may refer to, other than a function. */
interface FetchObject {
  fetch(request: Request, env?: HonoEnv): unknown;
}

/** Carries the id of the request, because a middleware may replace the request object. */
interface HonoEnv {
  [REQUEST_ID]: number;
}

/** The members of Hono that this module uses. The app is an instance of the project's copy of Hono. */
interface HonoApp extends FetchObject {
  routes: readonly { method: string; path: string; handler: HonoHandler }[];
  route(path: string, app: HonoApp): unknown;
  all(path: string, handler: (context: HonoContext) => Promise<Response>): unknown;
}

/** Hono wraps the handlers of an app with an error handler, and keeps the original handler in this property. */
type HonoHandler = ((...args: never[]) => unknown) & { __COMPOSED_HANDLER?: HonoHandler };

interface HonoContext {
  req: { raw: Request; arrayBuffer(): Promise<ArrayBuffer> };
  env: HonoEnv;
}

interface LoadedApp {
  routes: AppRoutes;
  respond(request: Request, id: number): unknown;
}

type AppFetch = Extract<AppQuery, { kind: "app" }>;

export interface AppServerOptions {
  connection: ServiceConnection;
  /** Loads the export that `http.app` refers to. */
  load(): Promise<unknown>;
  /** Executes `work` in the context of a request: clients without a URL then call the server as the caller of the request. */
  inRequest<T>(request: { id: number; signal: AbortSignal }, work: () => T): T;
}

/** Answers requests with the HTTP app of the project. */
export class AppServer {
  readonly #options: AppServerOptions;
  readonly #responses = new FetchResponses();
  #loading: Promise<LoadedApp> | undefined;

  constructor(options: AppServerOptions) {
    this.#options = options;
  }

  async answer(query: AppQuery): Promise<unknown> {
    this.#loading ??= this.#load();
    const app = await this.#loading;
    if (query.kind === "app_routes") return app.routes;
    const { request } = query;
    if (request.op === "fetch_read") return this.#responses.read(request.id);
    if (request.op === "fetch_cancel") return this.#responses.cancel(request.id);
    return this.#responses.start(request.id, (signal) => this.#respond(app, request, query, signal));
  }

  async #load(): Promise<LoadedApp> {
    const app = await this.#options.load();
    if (isHono(app)) {
      // Copies the routes of the app, so that a request that none of them answers continues with the routes of the service.
      const outer = new (app.constructor as new () => HonoApp)();
      outer.route("/", app);
      const routes = app.routes.map(({ method, path, handler }) => ({
        method,
        path,
        is_middleware: method === "ALL" && takesNext(handler),
      }));
      outer.all("*", (context) => this.#passOn(context));
      return { routes, respond: (request, id) => outer.fetch(request, { [REQUEST_ID]: id }) };
    }
    if (typeof app === "function") return { routes: null, respond: (request) => app(request) };
    if (hasFetch(app)) return { routes: null, respond: (request) => app.fetch(request) };
    throw new Error(
      "the export is neither a Hono app, nor an object with the method fetch, nor a function (request) => Response",
    );
  }

  async #respond(app: LoadedApp, message: NewFetch, { origin, has_body }: AppFetch, signal: AbortSignal) {
    const { id, method, path, headers } = message;
    const init = { method, headers, signal, ...(has_body && { body: this.#bodyOf(id), duplex: "half" }) };
    const request = new Request(`${origin}${path}`, init as RequestInit);
    const response = await this.#options.inRequest({ id, signal }, async () => app.respond(request, id));
    if (isResponse(response)) return response;
    throw new TypeError("The HTTP app of the project did not return a Response.");
  }

  #bodyOf(id: number): ReadableStream {
    const { connection } = this.#options;
    return new ReadableStream(
      {
        async pull(controller) {
          const chunk = await connection.request(undefined, { op: "app_body", id });
          if (chunk) controller.enqueue(chunk);
          else controller.close();
        },
      },
      { highWaterMark: 0 },
    );
  }

  async #passOn({ req, env }: HonoContext): Promise<Response> {
    const { connection } = this.#options;
    const { method, headers, url, signal } = req.raw;
    const id = env[REQUEST_ID];
    const { pathname, search } = new URL(url);
    const request: NewFetch = {
      op: "fetch",
      id: connection.nextId(),
      method,
      path: `${pathname}${search}`,
      headers: [...headers],
      // A middleware may have read the body: arrayBuffer() then returns Hono's copy.
      ...(req.raw.body !== null && { body: new Uint8Array(await req.arrayBuffer()) }),
    };
    return fetchByMessages(request, signal, (sent) =>
      connection.request(undefined, sent.op === "fetch" ? { op: "app_fetch", id, is_next: true, request: sent } : sent),
    );
  }
}

/** A handler for all methods that takes `next` is a middleware, as in Hono's own list of routes. */
const takesNext = ({ length, __COMPOSED_HANDLER: original }: HonoHandler): boolean =>
  original ? takesNext(original) : length > 1;

const hasFetch = (value: unknown): value is FetchObject =>
  typeof (value as Partial<FetchObject> | null)?.fetch === "function";

const isHono = (value: unknown): value is HonoApp =>
  hasFetch(value) &&
  Array.isArray((value as Partial<HonoApp>).routes) &&
  typeof (value as HonoApp).route === "function";

/** Checks the members, because the app may use the Response class of another realm or package. */
const isResponse = (value: unknown): value is Response =>
  typeof (value as Partial<Response> | null)?.status === "number" && (value as Response).headers !== undefined;
