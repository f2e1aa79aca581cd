import type { Context } from "hono";
import { invalidResponse, isVersion2, problemResponse } from "../experiments/http/errors.ts";
import { ApiError, InvalidRequestError } from "../platform/errors.ts";
import type { Log } from "../platform/lib/log.ts";
import { isDiskFull, isUnavailable } from "../platform/lib/unavailable.ts";

/** What nginx writes into its log for a client that closed its connection. It is never sent. */
const CLIENT_GONE = 499;

/**
 * The answer to whatever was thrown: `{"detail": sentence}`, except where an API lists its reasons or writes RFC 7807. The cause
 * goes to the log alone.
 */
export function errorResponse(error: unknown, context: Context, log: Log): Response {
  // The client has hung up while it waited: nobody reads the answer, and nothing has failed.
  if (context.req.raw.signal.aborted) return new Response(null, { status: CLIENT_GONE });
  if (error instanceof InvalidRequestError) {
    return isVersion2(context) ? problemResponse(422, error.message, context) : invalidResponse(error, context);
  }
  const { status, detail, headers } = refusalOf(error, context.req, log);
  if (isVersion2(context)) return problemResponse(status, detail, context, headers);
  return context.json({ detail }, status as 500, headers);
}

/** What a caller is told of an error; its cause goes to the log. */
export function refusalOf(
  error: unknown,
  { method, path }: { method: string; path: string },
  log: Log,
): { status: number; detail: string; headers: Record<string, string> } {
  const known = error instanceof ApiError ? error : asUnavailable(error);
  if (known.status >= 500) log.error({ method, path, code: known.code, cause: known.cause ?? error }, known.message);
  const headers: Record<string, string> = known.status === 503 ? { "retry-after": "1" } : {};
  if (known.status === 401) headers["www-authenticate"] = "Bearer";
  return { status: known.status, detail: known.message, headers };
}

function asUnavailable(error: unknown): ApiError {
  if (isDiskFull(error)) return new ApiError("disk_full", {}, error);
  return isUnavailable(error)
    ? new ApiError("unavailable", { reason: "The database does not answer right now. Try again." }, error)
    : new ApiError("internal", {}, error);
}
