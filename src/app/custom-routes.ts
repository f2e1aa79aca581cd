import { type Context, Hono, type MiddlewareHandler } from "hono";
import type { Authentication } from "../access/http/auth.ts";
import type { AppHost, AppRoutes } from "../agent-server/index.ts";
import type { AuthUser, Caller } from "../platform/contract/caller.ts";
import { ApiError } from "../platform/errors.ts";
import { pathBelow, requestOrigin } from "../platform/http/base-url.ts";
import type { App, Env } from "../platform/http/route.ts";
import type { Log } from "../platform/lib/log.ts";
import { errorResponse } from "./error-response.ts";
import { fetchAsUser, urlBelow } from "./fetch-as-user.ts";
import { routeOf } from "./metrics.ts";

export interface CustomRoutesOptions {
  host: AppHost;
  /** Whether requests to routes of the app must be authenticated (`http.enable_custom_route_auth`). */
  requires_auth: boolean;
  /** Whether requests to the service are authenticated before the app's middleware handles them (`http.middleware_order: auth_first`). */
  is_auth_first: boolean;
}

/** Paths that the app cannot override: health checks, calls from the control plane, and the web app. */
const RESERVED = /^\/(ok|internal|app)(\/|$)/;

interface Service {
  root: App;
  prefix: string;
  authentication: Authentication;
  limitBody: MiddlewareHandler<Env>;
  log: Log;
}

type Match = (method: string, path: string) => "route" | "middleware" | undefined;

/**
 * Serves the routes of the project's HTTP app before the routes of the service. A Hono, Starlette or FastAPI app gets the requests that
 * match a route or a middleware that it declares; an app of any other kind gets those that no route of the service matches.
 */
export class CustomRoutes {
  readonly #options: CustomRoutesOptions;
  readonly #service: Service;
  readonly #fetchAs: ReturnType<typeof fetchAsUser>;
  #matcher: { routes: AppRoutes; match: Match } | undefined;

  constructor(options: CustomRoutesOptions, { root, prefix, ...service }: Service) {
    this.#options = options;
    this.#service = { root, prefix, ...service };
    this.#fetchAs = fetchAsUser(Promise.resolve(root), prefix, "app");
  }

  /** Serves the app's routes as a middleware. Must be registered before the middleware that authenticates requests to the service. */
  readonly handle: MiddlewareHandler<Env> = async (context, next) => {
    const { requires_auth, is_auth_first } = this.#options;
    const { origin } = context.env ?? {};
    const { authentication } = this.#service;
    const match = origin === "app" ? undefined : await this.#matchOf(context);
    // A webhook request has no caller, so it must not reach the routes of the service.
    if (origin === "webhook") {
      if (match === "route") return this.#answer(context);
      throw new ApiError("route_not_found", { method: context.req.method, path: context.req.path });
    }
    if (!match) return next();
    // What a middleware answers and the service does not is a route of the app, too, such as an app that is mounted into it. The request
    // of a browser before a request from another origin has no key.
    const isRoute =
      match === "route" || (requires_auth && context.req.method !== "OPTIONS" && routeOf(context) === undefined);
    if (isRoute ? !requires_auth : !is_auth_first) return this.#answer(context);
    let response: Response | undefined;
    await (isRoute ? authentication.ofApp : authentication.ofService)(context, async () => {
      response = await this.#answer(context);
    });
    return response;
  };

  /** Returns whether a route of the app matches a request, or only a middleware. Undefined if neither does. */
  async #matchOf(context: Context<Env>): Promise<ReturnType<Match>> {
    const path = pathBelow(this.#service.prefix, context.req.path);
    if (path === undefined || RESERVED.test(path)) return undefined;
    // The app has no declared routes, or it cannot be loaded: it gets only the requests that no route of the service matches.
    const routes = await this.#options.host.routes.catch(() => null);
    if (!routes) return routeOf(context) === undefined ? "route" : undefined;
    if (this.#matcher?.routes !== routes) this.#matcher = { routes, match: matcherOf(routes) };
    const { match } = this.#matcher;
    const { method } = context.req;
    const found = match(method, path || "/");
    // Starlette decodes a slash, which Hono does not, and ignores a line break at the end.
    const decoded = decodedPath(path).replace(/\n$/, "");
    return found === "route" || decoded === path ? found : (match(method, decoded) ?? found);
  }

  async #answer(context: Context<Env>): Promise<Response | undefined> {
    const refused = await this.#service.limitBody(context, async () => {
      context.res = await this.#fetch(context);
    });
    return refused || undefined;
  }

  #fetch(context: Context<Env>): Promise<Response> {
    const { raw } = context.req;
    const { caller: internal_caller, origin } = context.env ?? {};
    const { root, prefix, authentication, log } = this.#service;
    const url = new URL(requestOrigin(context.req));
    const { pathname, search } = new URL(raw.url);
    url.pathname = pathBelow(prefix, pathname) ?? pathname;
    url.search = search;
    const known = context.get("caller") as Caller | undefined;
    const callerOf = async (request: Request): Promise<Caller> => {
      if (internal_caller) return internal_caller;
      if (known && authentication.mayUseAgents(known)) return known;
      // If the incoming request has no such caller, such as a webhook, the app may send a key of its own.
      const hasKey = ["x-api-key", "authorization"].some((name) => request.headers.has(name));
      return authentication.callerOfApp(hasKey ? request : raw);
    };
    return this.#options.host.fetch(raw, url, {
      user: known && userOf(known),
      fetch: async (request) => {
        try {
          return await this.#fetchAs(await callerOf(request), request);
        } catch (error) {
          return errorResponse(error, context, log);
        }
      },
      next: async (request) => {
        if (origin === "webhook")
          return errorResponse(
            new ApiError("route_not_found", { method: raw.method, path: context.req.path }),
            context,
            log,
          );
        return root.fetch(new Request(urlBelow(prefix, request.url), request), {
          caller: internal_caller,
          origin: "app",
        });
      },
    });
  }
}

/** The user of a key or JWT has the scopes as permissions. */
const userOf = ({ user, user_id, scopes }: Caller): AuthUser =>
  user ?? { identity: user_id, display_name: user_id, is_authenticated: true, permissions: [...scopes] };

/** The matcher may match more requests than the app's own router. If none of the app's routes matches, the app passes the request back. */
function matcherOf(routes: NonNullable<AppRoutes>): Match {
  const hono = new Hono();
  const handlers = { route: () => new Response(), middleware: () => new Response() };
  for (const { method, path, is_middleware } of routes)
    hono.on(method, withoutExpressions(path), is_middleware ? handlers.middleware : handlers.route);
  return (method, path) => {
    const [found] = hono.router.match(method === "HEAD" ? "GET" : method, path);
    if (found.some(([[handler]]) => handler === handlers.route)) return "route";
    return found.length > 0 ? "middleware" : undefined;
  };
}

function decodedPath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** Removes regexes (`{[0-9]+}`), which could block this thread. If one may match a slash, `*` replaces its segment and the rest. */
function withoutExpressions(path: string): string {
  const parameters = path.replaceAll(/\{((?:[^{}]|\{[\d,]+\})*)\}/g, (whole, expression: string) =>
    /[./^-]|\\[A-Z]/.test(expression.replaceAll(/\w-\w/g, "")) ? whole : "",
  );
  return parameters.replace(/[^/]*\{.*$/, "*");
}
