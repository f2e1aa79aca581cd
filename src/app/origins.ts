import type { MiddlewareHandler } from "hono";
import { cors } from "hono/cors";
import { isPublic, isUiFile, scopeOf } from "../access/http/scopes.ts";
import type { Access } from "../access/index.ts";
import { hostOf } from "../control-plane/http/deployment-address.ts";
import type { Scope } from "../platform/contract/caller.ts";
import { ApiError } from "../platform/errors.ts";
import { isFromOwnPage, pathBelow } from "../platform/http/base-url.ts";
import type { Env } from "../platform/http/route.ts";
import { type CorsSettings, STUDIO_ORIGIN } from "../platform/lib/cors.ts";

/** Response headers that web pages of other origins can read. */
const EXPOSED_HEADERS = ["Content-Location", "Location", "X-Pagination-Total", "X-Pagination-Next", "Mcp-Session-Id"];

export interface OriginPolicyOptions {
  access: Pick<Access, "isOpen">;
  cors: CorsSettings;
  public_url: string | undefined;
  /** Accepted host names besides loopback names; undefined if the server does not listen on loopback. */
  allowed_hosts: readonly string[] | undefined;
}

export interface PageRequest {
  method: string;
  /** Path without the prefix of all routes and without the query. For a request to a deployment, it is `/deployments/{slug}…`. */
  path: string;
  /** @param name in lower case */
  header(name: string): string | undefined;
}

/**
 * Decides which web pages may use the service. Non-browser clients send no origin and are always accepted.
 *
 * An open service (without keys) requires no credentials, so any web page could use it. Its agent server and experiments accept loopback
 * and listed origins; the web app and routes of other scopes accept only pages of the service. A closed service requires a key in a
 * header, which browsers do not add by themselves, so it accepts all origins, or the listed ones.
 */
export class OriginPolicy {
  readonly #options: OriginPolicyOptions;
  /** Whether a closed service accepts all origins. */
  readonly #acceptsAll: boolean;

  constructor(options: OriginPolicyOptions) {
    this.#options = options;
    const { origins, origin_pattern } = options.cors;
    this.#acceptsAll = origins.includes("*") || (origins.length === 0 && !origin_pattern);
  }

  /** Returns the value of `Access-Control-Allow-Origin`; undefined if the header is not needed. Throws forbidden_origin. */
  async allowedOrigin(request: PageRequest): Promise<string | undefined> {
    const origin = request.header("origin");
    const site = request.header("sec-fetch-site");
    if (origin === undefined && site === undefined) return undefined;
    const isClosed = !(await this.#options.access.isOpen());
    if (isClosed && this.#acceptsAll) return "*";
    const isOther = site === "cross-site" || site === "same-site";
    if (origin === undefined && (isClosed || (isOther && (isNavigation(request) || isUiScript(request)))))
      return undefined;
    if (this.#isOwn(request, isClosed)) return origin;
    if (origin !== undefined && this.#isListed(origin, request, isClosed)) return origin;
    throw new ApiError("forbidden_origin", { origin: origin ?? "other origins" });
  }

  #isOwn({ path, header }: PageRequest, isClosed: boolean): boolean {
    const host = header("host")?.toLowerCase() ?? "";
    const { public_url, allowed_hosts } = this.#options;
    // Subdomains of localhost belong to deployments. Requests from pages of a deleted deployment reach the service itself.
    const isDeploymentHost = hostOf(host).endsWith(".localhost") && !allowed_hosts?.includes(hostOf(host));
    if (!isClosed && isDeploymentHost && isPrivatePath(path)) return false;
    return isFromOwnPage(header, { public_url });
  }

  #isListed(origin: string, { method, path }: PageRequest, isClosed: boolean): boolean {
    const { origins, origin_pattern, studio } = this.#options.cors;
    if (!isClosed && isPrivatePath(path)) return false;
    if (!isClosed && LOOPBACK_ORIGIN.test(origin)) return true;
    if (studio && origin === STUDIO_ORIGIN && STUDIO_SCOPES.has(scopeOf(path, method))) return true;
    return origins.includes("*") || origins.includes(origin) || (origin_pattern?.test(origin) ?? false);
  }
}

const STUDIO_SCOPES: ReadonlySet<Scope | null | undefined> = new Set(["agents", null, undefined]);

const LOOPBACK_ORIGIN = /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;

const SHARED_SCOPES: ReadonlySet<Scope> = new Set(["agents", "experiments"]);

/** Whether an open service accepts the path only from its own pages, because the route returns secrets, runs code or grants access. */
function isPrivatePath(path: string): boolean {
  // A preflight has the method OPTIONS, so the scope cannot depend on the method: the scope of GET applies to all methods.
  const scope = scopeOf(path, "GET");
  return (scope !== undefined && scope !== null && !SHARED_SCOPES.has(scope)) || /^\/app(\/|$)/.test(path);
}

/** Whether a browser opens a public page or the API docs, for example through a link or an OAuth redirect. */
const isNavigation = ({ method, path, header }: PageRequest): boolean =>
  method === "GET" &&
  header("sec-fetch-mode") === "navigate" &&
  header("sec-fetch-dest") === "document" &&
  (isPublic(method, path) || /^(\/deployments\/[^/]+)?\/docs(\/[^/]+)?$/.test(path));

/** Whether a request is for a UI component file that a page embeds. Such files contain no data. */
const isUiScript = ({ method, path, header }: PageRequest): boolean =>
  header("sec-fetch-mode") === "no-cors" && isUiFile(method, path.replace(/^\/deployments\/[^/]+/, ""));

/** Rejects requests from pages of origins that are not allowed, and sets the CORS headers for allowed origins. */
export function checkOrigin(policy: OriginPolicy, prefix: string, settings: CorsSettings): MiddlewareHandler<Env> {
  const { methods, headers, exposed, max_age_s } = settings;
  const ofPages = cors({
    async origin(_, { req, res }) {
      const path = pathBelow(prefix, req.path) ?? req.path;
      const allowed = await policy.allowedOrigin({ method: req.method, path, header: (name) => req.header(name) });
      // Chrome requires this header for requests from public pages to local addresses.
      if (req.header("access-control-request-private-network"))
        res.headers.set("Access-Control-Allow-Private-Network", "true");
      return allowed;
    },
    ...(methods && { allowMethods: [...methods] }),
    ...(headers && { allowHeaders: [...headers] }),
    exposeHeaders: [...EXPOSED_HEADERS, ...exposed],
    maxAge: max_age_s,
  });
  return async (context, next) => {
    const { method, headers: sent } = context.req.raw;
    if (method === "OPTIONS" || sent.has("origin") || sent.has("sec-fetch-site")) return ofPages(context, next);
    await next();
    // Caches must not give this response to pages. Setting headers before the handler, as cors() does, makes Hono copy each response.
    context.res.headers.append("vary", "Origin");
  };
}
