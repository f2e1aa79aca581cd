import type { MiddlewareHandler } from "hono";
import { mayUse, type Scope } from "../../platform/contract/caller.ts";
import { ApiError } from "../../platform/errors.ts";
import { pathBelow } from "../../platform/http/base-url.ts";
import { OpenAnswers } from "../../platform/http/open-answers.ts";
import type { Env } from "../../platform/http/route.ts";
import { type Access, type Credentials, forGood } from "../access.ts";
import { isOpen, scopeOf } from "./scopes.ts";

/**
 * Finds out who calls, and whether they may call this path, before anything else is looked at: whoever may not learns neither
 * which routes there are nor what a body should look like. Open paths have no caller.
 */
export function authenticate(access: Access, prefix: string, max_open: number): MiddlewareHandler<Env> {
  const answers = new OpenAnswers(max_open);
  return async (context, next) => {
    const path = pathBelow(prefix, context.req.path);
    if (path === undefined || !isOpen(context.req.method, path)) {
      const inner = context.env?.caller;
      const { caller, onEnd, isLimited } = inner
        ? forGood(inner)
        : await access.admit(credentialsOf((name) => context.req.header(name)));
      const scope = path === undefined ? undefined : scopeOf(path, context.req.method);
      if (scope && !mayUse(caller, scope)) throw new ApiError("missing_scope", { scope });
      if (isLimited) answers.check(caller, context.req.path);
      context.set("caller", caller);
      context.set("onAccessEnd", (listener) => {
        const stop = [onEnd(listener), ...(isLimited ? [answers.enter(caller)] : [])];
        return () => {
          for (const end of stop.splice(0)) end();
        };
      });
      await next();
      // Nobody on the way is to keep what may have a secret in it.
      if (scope && HOLDS_SECRETS.has(scope)) context.header("cache-control", "no-store");
      return;
    }
    await next();
  };
}

const HOLDS_SECRETS: ReadonlySet<Scope> = new Set(["tokens", "providers", "deployments", "admin"]);

/** @param header the value of a header, by its name in lower case */
export const credentialsOf = (header: (name: string) => string | undefined): Credentials => ({
  api_key: header("x-api-key"),
  bearer: /^Bearer +(\S.*)$/i.exec(header("authorization") ?? "")?.[1],
  tenant_id: header("x-tenant-id"),
});
