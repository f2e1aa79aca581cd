import type { RouteConfig } from "@hono/zod-openapi";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { Checked, Handler } from "../../platform/http/route.ts";

/** A handler that sends the result of `run` with the success status of the route: 200, 201, or 204 without a body. */
export function jsonHandler<R extends RouteConfig>(route: R, run: (request: Checked<R>) => unknown): Handler<R> {
  // JavaScript objects list numeric keys in ascending order.
  const status = Number(Object.keys(route.responses)[0]);
  return async (request) => {
    const body = await run(request);
    if (status === 204) return request.context.body(null, 204);
    return request.context.json(body as object, status as ContentfulStatusCode);
  };
}
