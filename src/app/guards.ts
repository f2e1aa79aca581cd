import type { MiddlewareHandler } from "hono";
import { hostOf } from "../control-plane/http/deployment-address.ts";
import { ApiError } from "../platform/errors.ts";

const LOOPBACK_NAME = /^(localhost|127(\.\d+){3}|\[::1\]|([\w-]+\.)+localhost)$/;

/** Rejects unknown host names. With DNS rebinding, a page's host name can resolve to 127.0.0.1, so the page could read a keyless server. */
export function onlyKnownHosts(allowed: readonly string[]): MiddlewareHandler {
  return async (context, next) => {
    const host = hostOf(context.req.header("host"));
    if (!isKnownHost(host, allowed)) throw new ApiError("forbidden_host", { host });
    await next();
  };
}

export const isKnownHost = (host: string, allowed: readonly string[]): boolean =>
  host === "" || LOOPBACK_NAME.test(host) || allowed.includes(host);

const METHODS_WITH_BODY = new Set(["POST", "PUT", "PATCH", "DELETE"]);

/**
 * Requires application/json for bodies from web pages, because browsers send other types, such as text/plain, without a preflight. Requests
 * with a custom header, such as Studio's, always have a preflight. Non-browser clients send no Origin and are not checked.
 *
 * @param isExempt returns true for requests whose URL contains a secret
 */
export function requireJsonFromPages(isExempt: (method: string, path: string) => boolean): MiddlewareHandler {
  return async ({ req }, next) => {
    if (!isExempt(req.method, req.path) && isPageWithoutJson(req.method, (name) => req.header(name)))
      throw new ApiError("unsupported_media_type");
    await next();
  };
}

/** Headers that a page can send only after a preflight. */
const PREFLIGHT_HEADERS = ["x-auth-scheme", "x-api-key", "authorization"];

/** Whether a request comes from a web page and has a body that needs no preflight. */
export function isPageWithoutJson(method: string, header: (name: string) => string | undefined): boolean {
  if (!METHODS_WITH_BODY.has(method) || header("origin") === undefined) return false;
  if (PREFLIGHT_HEADERS.some((name) => header(name) !== undefined)) return false;
  const type = header("content-type");
  const hasBody = header("content-length") !== "0" && (type !== undefined || header("content-length") !== undefined);
  return hasBody && !/^application\/json\b/i.test(type ?? "");
}
