import type { Context } from "hono";
import type { InvalidRequestError } from "../../platform/errors.ts";

/** `{"detail": [{loc, msg, type, input}]}`: what clients of FastAPI services read. */
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

/** Below these paths errors are RFC 7807. */
const VERSION_2 = /^\/(api\/)?v2\/(runs|datasets)\//;

export const isVersion2 = (context: Context): boolean => VERSION_2.test(context.req.path);

/** An error of version 2, as RFC 7807 has it. */
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
