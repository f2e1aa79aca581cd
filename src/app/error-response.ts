import type { Context } from "hono";
import { invalidResponse, isVersion2, problemResponse } from "../experiments/http/route.ts";
import { otlpErrorResponse } from "../experiments/http/traces.ts";
import { asApiError, isDiskFull } from "../platform/database/database-errors.ts";
import { ApiError, InvalidRequestError } from "../platform/errors.ts";
import type { SelectHeaders } from "../platform/lib/header-selection.ts";
import type { Log } from "../platform/lib/log.ts";

/** The nonstandard status that nginx logs when the client closes the connection. */
const CLIENT_CLOSED_REQUEST = 499;

/**
 * Returns an error as `{"detail": sentence}`. Responses of APIs that list validation errors, or use RFC 7807 or protobuf, have other formats.
 *
 * @param logged selects the request headers that are logged with a 5xx response
 */
export function errorResponse(error: unknown, context: Context, log: Log, logged?: SelectHeaders): Response {
  // The client has closed the connection, so the status is never sent.
  if (context.req.raw.signal.aborted) return new Response(null, { status: CLIENT_CLOSED_REQUEST });
  if (error instanceof InvalidRequestError) {
    return isVersion2(context) ? problemResponse(422, error.message, context) : invalidResponse(error, context);
  }
  const { status, detail, headers } = describeError(
    error,
    { method: context.req.method, path: context.req.path, ...(logged && { headers: logged(context.req.header()) }) },
    log,
  );
  if (isVersion2(context)) return problemResponse(status, detail, context, headers);
  return otlpErrorResponse(context, status, detail, headers) ?? context.json({ detail }, status as 500, headers);
}

/** Returns the status, detail and headers of an error response. Logs the cause if the status is 500 or greater. */
export function describeError(
  error: unknown,
  request: { method: string; path: string; headers?: Record<string, string> },
  log: Log,
): { status: number; detail: string; headers: Record<string, string> } {
  const known = isDiskFull(error) ? new ApiError("disk_full", {}, error) : asApiError(error);
  if (known.status >= 500)
    log.error({ ...request, status: known.status, code: known.code, cause: known.cause ?? error }, "request failed");
  const isTemporary = known.status === 503 || known.status === 429;
  const headers: Record<string, string> = isTemporary ? { "retry-after": "1" } : {};
  if (known.status === 401) headers["www-authenticate"] = "Bearer";
  return { status: known.status, detail: known.message, headers: { ...headers, ...known.headers } };
}
