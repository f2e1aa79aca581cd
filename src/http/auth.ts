import { createHash, timingSafeEqual } from "node:crypto";
import type { MiddlewareHandler } from "hono";
import { type Caller, DEFAULT_TENANT } from "../contract/caller.ts";
import { ApiError } from "../errors.ts";
import type { Env } from "./route.ts";

const LOCAL: Caller = { tenant_id: DEFAULT_TENANT, user_id: "local", scopes: ["admin"] };
const ADMIN: Caller = { tenant_id: DEFAULT_TENANT, user_id: "admin", scopes: ["admin"] };

/** Open to everybody, also when keys are asked for: probes have none, and what is shared has its token in the path. */
const OPEN_PATHS = /^(\/ok$|(\/api\/v1)?\/public\/)/;

/**
 * Lets callers with a key in, and everybody else out. Without any key configured the server is open, which the
 * command line allows on loopback alone.
 */
export function authenticate(keys: readonly string[], prefix: string): MiddlewareHandler<Env> {
  const digests = keys.map(digest);
  return async (context, next) => {
    const path = context.req.path.slice(prefix.length);
    if (digests.length > 0 && !OPEN_PATHS.test(path) && context.req.method !== "OPTIONS") {
      const given = digest(keyOf(context.req.header("x-api-key"), context.req.header("authorization")));
      // Every key is compared, in the same time whether it matches or not.
      const matches = digests.filter((known) => timingSafeEqual(known, given));
      if (matches.length === 0) throw new ApiError("unauthorized");
    }
    context.set("caller", digests.length > 0 ? ADMIN : LOCAL);
    await next();
  };
}

const keyOf = (apiKey: string | undefined, authorization: string | undefined): string =>
  apiKey ?? /^Bearer (.+)$/i.exec(authorization ?? "")?.[1] ?? "";

const digest = (key: string): Buffer => createHash("sha256").update(key).digest();
