import type { RouteConfig } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { InvalidRequestError } from "../../platform/errors.ts";
import { type BaseUrlOptions, baseUrlOf } from "../../platform/http/base-url.ts";
import { fastapiErrors } from "../../platform/http/fastapi.ts";
import { type App, type Checked, type Env, type Handler, handleRoute, jsonText } from "../../platform/http/route.ts";

export type Routes = ReturnType<typeof routesBelow>;

/** Serves routes of the contract below each of the prefixes, without adding them to the OpenAPI document of the app. */
export function routesBelow(app: App, prefixes: readonly string[]) {
  const serve = <R extends RouteConfig>(route: R, handler: Handler<R>): void => {
    for (const prefix of prefixes)
      handleRoute(app, { ...route, path: `${prefix}${route.path}` }, handler as Handler<RouteConfig>, fastapiErrors);
  };
  return {
    serve,
    /** Serves an operation that returns JSON text, which is sent without parsing it. */
    json: <R extends RouteConfig>(route: R, operation: (request: Checked<R>) => Promise<{ json: string }>) =>
      serve(route, async (request) => pageResponse(request.context, (await operation(request)).json)),
    deletion: <R extends RouteConfig>(route: R, noun: string, operation: (request: Checked<R>) => Promise<unknown>) =>
      serve(route, async (request) => {
        await operation(request);
        return request.context.json({ message: `${noun} deleted` });
      }),
  };
}

/** The address of this API as the client sees it. */
export const apiUrlOf = (context: Context<Env>, base_url: BaseUrlOptions): string =>
  `${baseUrlOf(context, base_url)}/api/v1`;
/**
 * Query results are also available as server-sent events with JSON patches, for the Python client. A single patch adds all results.
 *
 * @param json the JSON text of the results
 */
function pageResponse({ req }: Context, json: string): Response {
  if (!req.path.endsWith("/query") || !req.header("accept")?.includes("text/event-stream")) return jsonText(json);
  const events = `event: data\ndata: [{"op":"add","path":"","value":${json}}]\n\nevent: end\ndata: {}\n\n`;
  return new Response(events, { headers: { "content-type": "text/event-stream" } });
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
const VERSION_2 = /^\/(api\/)?v2\/(runs|datasets|public|threads|traces)(\/|$)/;

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
