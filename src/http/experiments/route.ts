import type { RouteConfig } from "@hono/zod-openapi";
import { invalidParts } from "../../contract/invalid-parts.ts";
import { InvalidRequestError } from "../../errors.ts";
import { type App, answer, type Handler, type Refusal } from "../route.ts";

/** Every reason with its place, as FastAPI lists them. */
const byPart: Refusal = {
  invalid: (issues, part) => new InvalidRequestError(invalidParts(issues, [part])),
  unreadable: (reason) => new InvalidRequestError([{ loc: ["body"], msg: reason, type: "json_invalid" }]),
};

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
