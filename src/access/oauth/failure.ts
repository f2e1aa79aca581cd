import * as oauth from "oauth4webapi";
import { FetchFailedError, FetchRefusedError } from "../../platform/lib/safe-fetch.ts";

/** Why a provider did not do what it was asked for, in words that hold nothing secret. */
export interface ProviderFailure {
  /** For callers and events: a word of the provider such as `invalid_grant`, or one of ours. */
  reason: string;
  /** For the log, as far as it is known. */
  status?: number | undefined;
  code?: string | undefined;
}

/**
 * Errors of the OAuth library carry whole answers, tokens included, and those of a fetch the address: neither is ever logged or
 * shown, but what this makes of them.
 */
export function failureOf(error: unknown): ProviderFailure {
  if (error instanceof oauth.ResponseBodyError) return { reason: wordOf(error.error), status: error.status };
  if (error instanceof FetchRefusedError) return { reason: "its address is not allowed" };
  if (error instanceof FetchFailedError) return { reason: FETCH_FAILURES[error.reason] };
  const { name = "", code, cause } = (error ?? {}) as { name?: string; code?: unknown; cause?: unknown };
  if (name === "TimeoutError" || name === "AbortError") return { reason: FETCH_FAILURES.timeout };
  const status = cause instanceof Response ? cause.status : undefined;
  const reason = status === undefined ? "an answer that is not OAuth" : `status ${status}`;
  return { reason, status, code: typeof code === "string" ? code : name };
}

const FETCH_FAILURES = {
  timeout: "no answer in time",
  too_large: "an answer that is too large",
  unreachable: "no connection",
} as const satisfies Record<FetchFailedError["reason"], string>;

/** What somebody else calls an error, when it is such a word: visible ASCII, no more than a line. */
export const wordOf = (text: string): string => (/^[\x21-\x7e]{1,100}$/.test(text) ? text : "unreadable_error");
