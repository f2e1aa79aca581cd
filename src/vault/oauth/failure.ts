import * as oauth from "oauth4webapi";

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
  const { name = "", code, cause } = (error ?? {}) as { name?: string; code?: unknown; cause?: unknown };
  if (name === "TimeoutError" || name === "AbortError") return { reason: "no answer in time" };
  const known = typeof code === "string" && code.startsWith("OAUTH_") ? code : undefined;
  if (known) {
    const status = cause instanceof Response ? cause.status : undefined;
    return { reason: status ? `status ${status}` : "an answer that is not OAuth", status, code: known };
  }
  if (name === "FetchRefusedError") return { reason: "its address is not allowed", code: name };
  return { reason: "no connection", code: typeof code === "string" ? code : name };
}

/** What somebody else calls an error, when it is such a word: visible ASCII, no more than a line. */
export const wordOf = (text: string): string => (/^[\x21-\x7e]{1,100}$/.test(text) ? text : "unreadable_error");
