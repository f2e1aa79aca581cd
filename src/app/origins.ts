import type { MiddlewareHandler } from "hono";
import { cors } from "hono/cors";
import { isOpen, scopeOf } from "../access/http/scopes.ts";
import type { Access } from "../access/index.ts";
import { hostOf } from "../control-plane/http/deployment-address.ts";
import type { Scope } from "../platform/contract/caller.ts";
import { ApiError } from "../platform/errors.ts";
import { pathBelow } from "../platform/http/base-url.ts";
import type { Env } from "../platform/http/route.ts";
import { type CorsSettings, STUDIO_ORIGIN } from "../platform/lib/cors.ts";

/** Headers that clients in browsers need to see. */
const EXPOSED = ["Content-Location", "Location", "X-Pagination-Total", "X-Pagination-Next"];

export interface OriginPolicyOptions {
  access: Pick<Access, "isOpen">;
  cors: CorsSettings;
  /** Our own address as others reach it, where that is known. */
  public_url: string | undefined;
  /** Names that the service is called by on a loopback address, besides loopback's own. */
  allowed_hosts: readonly string[] | undefined;
}

/** What a request says of the page that sends it. */
export interface PageRequest {
  method: string;
  /** Below the prefix of all routes, without a query; for a deployment that of the router, `/deployments/{slug}`. */
  path: string;
  /** The value of a header, by its name in lower case. */
  header(name: string): string | undefined;
}

/**
 * Which web pages may use the service. Without keys a browser on this machine may ask for anything that its user may, so pages of
 * other origins are refused, whatever they send: with the agent server and the experiments those of loopback addresses and of listed
 * origins are not, with the rest nothing but the service's own pages is. With keys a page has to show one in a header, which no
 * browser does by itself; then all may, or those that are listed. Programs say nothing of an origin and are never held up.
 */
export class OriginPolicy {
  readonly #options: OriginPolicyOptions;
  /** With keys. */
  readonly #takesAll: boolean;

  constructor(options: OriginPolicyOptions) {
    this.#options = options;
    const { origins, origin_pattern } = options.cors;
    this.#takesAll = origins.includes("*") || (origins.length === 0 && !origin_pattern);
  }

  /**
   * Who may read the answer, for `Access-Control-Allow-Origin`: everybody, the page's origin, or undefined, when no other page asks.
   *
   * @throws ApiError forbidden_origin
   */
  async readerOf(request: PageRequest): Promise<string | undefined> {
    const origin = request.header("origin");
    const site = request.header("sec-fetch-site");
    if (origin === undefined && site === undefined) return undefined;
    const isClosed = !(await this.#options.access.isOpen());
    if (isClosed && this.#takesAll) return "*";
    const isOther = site === "cross-site" || site === "same-site";
    if (origin === undefined && (isClosed || (isOther && isVisit(request)))) return undefined;
    if (this.#isOwn(origin, request, isClosed)) return origin;
    if (origin !== undefined && this.#isListed(origin, request, isClosed)) return origin;
    throw new ApiError("forbidden_origin", { origin: origin ?? "other origins" });
  }

  /** Whether the page is one of the service itself. */
  #isOwn(origin: string | undefined, { path, header }: PageRequest, isClosed: boolean): boolean {
    const host = header("host")?.toLowerCase() ?? "";
    const { public_url, allowed_hosts } = this.#options;
    // A name below localhost is a deployment's, and the service's own only as long as there is no such deployment.
    const isBorrowed = hostOf(host).endsWith(".localhost") && !allowed_hosts?.includes(hostOf(host));
    if (!isClosed && isBorrowed && isOurs(path)) return false;
    const site = header("sec-fetch-site");
    if (site !== undefined) return site === "same-origin" || site === "none";
    if (origin === undefined || !URL.canParse(origin)) return false;
    return new URL(origin).host === host || (public_url !== undefined && new URL(public_url).origin === origin);
  }

  #isListed(origin: string, { method, path }: PageRequest, isClosed: boolean): boolean {
    const { origins, origin_pattern, studio } = this.#options.cors;
    if (!isClosed && isOurs(path)) return false;
    if (!isClosed && LOOPBACK_ORIGIN.test(origin)) return true;
    if (studio && origin === STUDIO_ORIGIN && STUDIO_SCOPES.has(scopeOf(path, method))) return true;
    return origins.includes("*") || origins.includes(origin) || (origin_pattern?.test(origin) ?? false);
  }
}

const STUDIO_SCOPES: ReadonlySet<Scope | null | undefined> = new Set(["agents", null, undefined]);

const LOOPBACK_ORIGIN = /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;

const SHARED_SCOPES: ReadonlySet<Scope> = new Set(["agents", "experiments"]);

/** What no page of another origin may use without a key: what holds secrets, runs code or decides who may do what. */
function isOurs(path: string): boolean {
  // Whatever the method: a browser asks with OPTIONS for all of them.
  const scope = scopeOf(path, "GET");
  return (scope !== undefined && scope !== null && !SHARED_SCOPES.has(scope)) || /^\/app(\/|$)/.test(path);
}

/** Whether somebody follows a link to a page: from a mail, from another site, or back from an OAuth provider. */
const isVisit = ({ method, path, header }: PageRequest): boolean =>
  method === "GET" &&
  header("sec-fetch-mode") === "navigate" &&
  header("sec-fetch-dest") === "document" &&
  (isOpen(method, path) || /^(\/deployments\/[^/]+)?\/docs$/.test(path));

/** Refuses pages of origins that may not use the service, and tells the others that they may read the answer. */
export function checkOrigin(policy: OriginPolicy, prefix: string, settings: CorsSettings): MiddlewareHandler<Env> {
  const { methods, headers, exposed, max_age_s } = settings;
  return cors({
    async origin(_, { req, res }) {
      const path = pathBelow(prefix, req.path) ?? req.path;
      const reader = await policy.readerOf({ method: req.method, path, header: (name) => req.header(name) });
      // Browsers that guard addresses of this machine ask for this besides.
      if (req.header("access-control-request-private-network"))
        res.headers.set("Access-Control-Allow-Private-Network", "true");
      return reader;
    },
    ...(methods && { allowMethods: [...methods] }),
    ...(headers && { allowHeaders: [...headers] }),
    exposeHeaders: [...EXPOSED, ...exposed],
    maxAge: max_age_s,
  });
}
