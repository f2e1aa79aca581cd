import type { MiddlewareHandler } from "hono";
import { hostOf } from "../control-plane/http/deployment-address.ts";
import { ApiError } from "../platform/errors.ts";

const LOOPBACK_NAME = /^(localhost|127(\.\d+){3}|\[::1\]|([\w-]+\.)+localhost)$/;

/**
 * On a loopback address only loopback names are answered: otherwise a web page could rebind its own name to
 * 127.0.0.1 and read the answers of a server that is open to local programs.
 */
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
 * A web page may send text/plain to any server without asking; application/json it may not, nor text/plain with a header of its own
 * (as the hosted Studio does). Programs, which send no Origin, are not held to a content type.
 *
 * @param isFree whether a request has its permission in its address, which no other page knows
 */
export function jsonFromPages(isFree: (method: string, path: string) => boolean): MiddlewareHandler {
  return async ({ req }, next) => {
    if (!isFree(req.method, req.path) && isPageWithoutJson(req.method, (name) => req.header(name)))
      throw new ApiError("unsupported_media_type");
    await next();
  };
}

/** Headers that a page may send only after the browser has asked for it. */
const HEADERS_ASKED_FOR = ["x-auth-scheme", "x-api-key", "authorization"];

/** Whether a request has a body that any web page could send without being asked. */
export function isPageWithoutJson(method: string, header: (name: string) => string | undefined): boolean {
  if (!METHODS_WITH_BODY.has(method) || header("origin") === undefined) return false;
  if (HEADERS_ASKED_FOR.some((name) => header(name) !== undefined)) return false;
  const type = header("content-type");
  const hasBody = header("content-length") !== "0" && (type !== undefined || header("content-length") !== undefined);
  return hasBody && !/^application\/json\b/i.test(type ?? "");
}
