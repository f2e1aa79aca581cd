import { type Lookup, systemLookup } from "./safe-fetch/addresses.ts";
import { FetchFailedError, FetchRefusedError } from "./safe-fetch/errors.ts";
import { type Fetching, type FetchLimits, send } from "./safe-fetch/one-request.ts";
import { type Hop, nextHop } from "./safe-fetch/redirects.ts";
import { type FetchRules, refusalOf } from "./safe-fetch/rules.ts";

export { FetchFailedError, FetchRefusedError } from "./safe-fetch/errors.ts";
export { type FetchRules, refusalOf } from "./safe-fetch/rules.ts";

/**
 * Fetches a URL that a caller named. The response has its whole body already; `redirect` in `init` means what it always does.
 * Rejects with a FetchRefusedError where the rules forbid it, with a FetchFailedError where no answer came of it, and with the
 * reason of the signal in `init` when that was aborted.
 */
export type SafeFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

const MAX_REDIRECTS = 5;

/**
 * @param lookup resolves names. Connections go to what it answered and what was vetted, so a name cannot lead elsewhere between
 *   the check and the connection (DNS rebinding)
 */
export function createSafeFetch(rules: FetchRules, limits: FetchLimits, lookup: Lookup = systemLookup): SafeFetch {
  return async (url, init) => {
    const refusal = refusalOf(String(url), rules);
    if (refusal !== undefined) throw new FetchRefusedError(refusal);
    const request = new Request(url, init);
    const deadline = AbortSignal.timeout(limits.timeout_ms);
    const fetching = { rules, limits, lookup, signal: AbortSignal.any([deadline, request.signal]) };
    try {
      return await follow(fetching, await firstHop(request), request.redirect);
    } catch (error) {
      if (error instanceof FetchRefusedError || error instanceof FetchFailedError) throw error;
      if (request.signal.aborted) throw request.signal.reason;
      if (deadline.aborted) throw new FetchFailedError("timeout", `No answer came within ${limits.timeout_ms} ms.`);
      throw new FetchFailedError("unreachable", "No answer came from this address.", error);
    }
  };
}

async function firstHop(request: Request): Promise<Hop> {
  const { url, method, headers } = request;
  const body = request.body ? new Uint8Array(await request.arrayBuffer()) : undefined;
  return { url: new URL(url), method, headers, body };
}

async function follow(fetching: Fetching, first: Hop, redirect: Request["redirect"]): Promise<Response> {
  let hop = first;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const answer = await send(fetching, hop);
    const next = redirect === "manual" ? undefined : nextHop(hop, answer);
    if (next === undefined) return answer;
    if (redirect === "error")
      throw new FetchRefusedError("The address answered with a redirect, which is not followed.");
    if (!mayFollow(hop.url, next.url, fetching.rules)) {
      throw new FetchRefusedError("The address answered with a redirect to a URL that may not be fetched.");
    }
    hop = next;
  }
  throw new FetchRefusedError(`The address answered with more than ${MAX_REDIRECTS} redirects.`);
}

const mayFollow = (from: URL, to: URL, rules: FetchRules): boolean =>
  refusalOf(to.href, rules) === undefined && (to.protocol === "https:" || from.protocol === "http:");
