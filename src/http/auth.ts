import type { Context, MiddlewareHandler } from "hono";
import { mayUse } from "../contract/caller.ts";
import { ApiError } from "../errors.ts";
import type { Access, Credentials } from "../vault/access.ts";
import type { Env } from "./route.ts";
import { isOpen, pathBelow, scopeOf } from "./scopes.ts";

/**
 * Finds out who calls, and whether they may call this path, before anything else is looked at: whoever may not learns neither
 * which routes there are nor what a body should look like. Open paths have no caller.
 */
export function authenticate(access: Access, prefix: string): MiddlewareHandler<Env> {
  return async (context, next) => {
    const path = pathBelow(prefix, context.req.path);
    if (path === undefined || !isOpen(context.req.method, path)) {
      const caller = await access.callerOf(credentialsOf(context));
      const scope = path === undefined ? undefined : scopeOf(path);
      if (scope && !mayUse(caller, scope)) throw new ApiError("missing_scope", { scope });
      context.set("caller", caller);
    }
    await next();
  };
}

const credentialsOf = ({ req }: Context): Credentials => ({
  api_key: req.header("x-api-key"),
  bearer: /^Bearer +(\S.*)$/i.exec(req.header("authorization") ?? "")?.[1],
  tenant_id: req.header("x-tenant-id"),
});
