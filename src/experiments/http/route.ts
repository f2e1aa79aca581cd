import type { RouteConfig } from "@hono/zod-openapi";
import { byPart } from "../../platform/http/fastapi-errors.ts";
import { type App, answer, type Handler } from "../../platform/http/route.ts";

/** Serves a route of the experiments API below each of the prefixes; its document is made from the contract alone. */
export function serveAt<R extends RouteConfig>(
  app: App,
  prefixes: readonly string[],
  route: R,
  handler: Handler<R>,
): void {
  for (const prefix of prefixes)
    answer(app, { ...route, path: `${prefix}${route.path}` }, handler as Handler<RouteConfig>, byPart);
}
