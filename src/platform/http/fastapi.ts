import type { RouteConfig } from "@hono/zod-openapi";
import { invalidParts } from "../contract/validation-errors.ts";
import { InvalidRequestError } from "../errors.ts";
import { type App, type Handler, handleRoute, type InputRules, type RequestErrors, withoutNul } from "./route.ts";

/** Errors that list all invalid fields, in FastAPI's format. */
export const fastapiErrors: RequestErrors = {
  invalid: (mismatches) =>
    new InvalidRequestError(
      mismatches.flatMap(({ part, value, issues }) =>
        invalidParts(issues, part === "body" ? value : undefined, [part]),
      ),
    ),
  malformedJson: ({ fault: { position, reason: error } }) =>
    new InvalidRequestError([
      { type: "json_invalid", loc: ["body", position], msg: "JSON decode error", input: {}, ctx: { error } },
    ]),
};

/** As in FastAPI, empty query values are kept, the last of repeated values counts, and a `null` body counts as missing. */
export const fastapiInput: InputRules = {
  query: (context) =>
    Object.fromEntries(
      Object.entries(context.req.queries()).map(([name, values]) => [name, withoutNul(values.at(-1) as string)]),
    ),
  body: (body) => body ?? undefined,
};

/** Serves a route with FastAPI's rules below each mount, but does not add it to the OpenAPI document. */
export function serveAt<R extends RouteConfig>(
  app: App,
  mounts: readonly string[],
  route: R,
  handler: Handler<R>,
): void {
  for (const mount of mounts) {
    const mounted = { ...route, path: `${mount}${route.path}` };
    handleRoute(app, mounted, handler as Handler<RouteConfig>, fastapiErrors, fastapiInput);
  }
}
