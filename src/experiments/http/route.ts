import type { RouteConfig } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { InvalidRequestError } from "../../platform/errors.ts";
import { fastapiErrors } from "../../platform/http/fastapi.ts";
import { type App, type Checked, type Handler, handleRoute, jsonText } from "../../platform/http/route.ts";

export type Routes = ReturnType<typeof routesBelow>;

/** Serves routes of the contract below each of the prefixes, without adding them to the OpenAPI document of the app. */
export function routesBelow(app: App, prefixes: readonly string[]) {
  const serve = <R extends RouteConfig>(route: R, handler: Handler<R>): void => {
    for (const prefix of prefixes)
      handleRoute(app, { ...route, path: `${prefix}${route.path}` }, handler as Handler<RouteConfig>, fastapiErrors);
  };
  return {
    serve,
    /** The operation returns JSON text, which is sent unparsed. */
    json: <R extends RouteConfig>(route: R, operation: (request: Checked<R>) => Promise<{ json: string }>) =>
      serve(route, async (request) => jsonText((await operation(request)).json)),
    deletion: <R extends RouteConfig>(route: R, noun: string, operation: (request: Checked<R>) => Promise<unknown>) =>
      serve(route, async (request) => {
        await operation(request);
        return request.context.json({ message: `${noun} deleted` });
      }),
  };
}

/** `{"detail": [{loc, msg, type, input}]}`, the format of FastAPI services. */
export const invalidResponse = (error: InvalidRequestError, context: Context): Response =>
  context.json({ detail: error.parts }, 422);

const TITLES: Record<number, string> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  409: "Conflict",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  422: "Unprocessable Content",
  503: "Service Unavailable",
};

/** Errors below these paths are RFC 7807 problem details. */
const VERSION_2 = /^\/(api\/)?v2\/(runs|datasets)\//;

export const isVersion2 = (context: Context): boolean => VERSION_2.test(context.req.path);

export function problemResponse(
  status: number,
  detail: string,
  context: Context,
  headers: Record<string, string> = {},
): Response {
  const title = TITLES[status] ?? "Internal Server Error";
  const problem = { type: "about:blank", title, status, detail, instance: context.req.path };
  return new Response(JSON.stringify(problem), {
    status,
    headers: { "content-type": "application/problem+json", ...headers },
  });
}
