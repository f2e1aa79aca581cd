import type { RouteConfig } from "@hono/zod-openapi";
import { byPart } from "./fastapi-errors.ts";
import { lastWins } from "./reading.ts";
import { type App, answer, type Handler } from "./route.ts";

/** Serves a route of the Auth Service below each of the mounts; its document is made from the contract alone. */
export function serveAt<R extends RouteConfig>(
  app: App,
  mounts: readonly string[],
  route: R,
  handler: Handler<R>,
): void {
  for (const mount of mounts)
    answer(app, { ...route, path: `${mount}${route.path}` }, handler as Handler<RouteConfig>, byPart, lastWins);
}
