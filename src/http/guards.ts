import type { MiddlewareHandler } from "hono";
import { ApiError } from "../errors.ts";

const LOOPBACK_NAME = /^(localhost|127(\.\d+){3}|\[::1\]|([\w-]+\.)+localhost)$/;

/**
 * On a loopback address only loopback names are answered: otherwise a web page could rebind its own name to
 * 127.0.0.1 and read the answers of a server that is open to local programs.
 */
export function onlyKnownHosts(allowed: readonly string[]): MiddlewareHandler {
  return async (context, next) => {
    const host = (context.req.header("host") ?? "").replace(/:\d+$/, "").toLowerCase();
    if (host !== "" && !LOOPBACK_NAME.test(host) && !allowed.includes(host))
      throw new ApiError("forbidden_host", { host });
    await next();
  };
}

const METHODS_WITH_BODY = new Set(["POST", "PUT", "PATCH", "DELETE"]);

/**
 * A web page may send text/plain to any server without asking; application/json it may not. Programs, which send
 * no Origin, are not held to a content type.
 */
export function jsonFromPages(): MiddlewareHandler {
  return async (context, next) => {
    const { req } = context;
    if (METHODS_WITH_BODY.has(req.method) && req.header("origin") !== undefined) {
      const type = req.header("content-type");
      const hasBody =
        req.header("content-length") !== "0" && (type !== undefined || req.header("content-length") !== undefined);
      if (hasBody && !/^application\/json\b/i.test(type ?? "")) throw new ApiError("unsupported_media_type");
    }
    await next();
  };
}
