import * as oauth from "oauth4webapi";
import { FetchFailedError, FetchRefusedError } from "../../platform/lib/safe-fetch/safe-fetch.ts";

/** Description of a failed request to a provider, without secrets. */
export interface ProviderFailure {
  /** For callers and events: an OAuth error code of the provider, such as `invalid_grant`, or a description. */
  reason: string;
  /** HTTP status and error code, for the log. */
  status?: number | undefined;
  code?: string | undefined;
}

/** Errors of the OAuth library contain tokens, and fetch errors contain the URL: log and return only this description. */
export function describeFailure(error: unknown): ProviderFailure {
  if (error instanceof oauth.ResponseBodyError) return { reason: safeErrorCode(error.error), status: error.status };
  if (error instanceof FetchRefusedError) return { reason: "the address is not allowed" };
  if (error instanceof FetchFailedError) return { reason: FETCH_FAILURES[error.reason] };
  const { name = "", code, cause } = (error ?? {}) as { name?: string; code?: unknown; cause?: unknown };
  if (name === "TimeoutError" || name === "AbortError") return { reason: FETCH_FAILURES.timeout };
  const status = cause instanceof Response ? cause.status : undefined;
  const reason = status === undefined ? "the response is not a valid OAuth response" : `status ${status}`;
  return { reason, status, code: typeof code === "string" ? code : name };
}

const FETCH_FAILURES = {
  timeout: "the request timed out",
  too_large: "the response is too large",
  unreachable: "the connection failed",
} as const satisfies Record<FetchFailedError["reason"], string>;

/** Returns a provider's error code if it consists of 1 to 100 visible ASCII characters, otherwise `unreadable_error`. */
export const safeErrorCode = (text: string): string => (/^[\x21-\x7e]{1,100}$/.test(text) ? text : "unreadable_error");
