import { FetchRefusedError } from "./errors.ts";

/** One request of those that redirects make of one. */
export interface Hop {
  url: URL;
  method: string;
  headers: Headers;
  body: Uint8Array<ArrayBuffer> | undefined;
}

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** What another origin may be told: it asked for nothing of what the first one was trusted with. */
const HARMLESS = new Set(["accept", "accept-language", "user-agent"]);

/**
 * Where an answer leads, or undefined when it is the last one. The method changes as the Fetch standard says.
 *
 * @throws FetchRefusedError when a body would have to be sent to another origin, or the address is none
 */
export function nextHop({ url, method, headers, body }: Hop, answer: Response): Hop | undefined {
  const location = answer.headers.get("location");
  if (location === null || !REDIRECTS.has(answer.status)) return undefined;
  if (!URL.canParse(location, url.href))
    throw new FetchRefusedError("The address answered with a redirect to nowhere.");
  const next = new URL(location, url);
  const elsewhere = next.origin !== url.origin;
  if (becomesGet(answer.status, method)) {
    return { url: next, method: "GET", headers: headersWithout(headers, { body: true, elsewhere }), body: undefined };
  }
  if (elsewhere && body !== undefined) {
    throw new FetchRefusedError("The address answered with a redirect that would send the request's body elsewhere.");
  }
  return { url: next, method, headers: headersWithout(headers, { body: false, elsewhere }), body };
}

const becomesGet = (status: number, method: string): boolean =>
  status === 303 ? method !== "GET" && method !== "HEAD" : (status === 301 || status === 302) && method === "POST";

function headersWithout(headers: Headers, { body, elsewhere }: { body: boolean; elsewhere: boolean }): Headers {
  const kept = [...headers].filter(
    ([name]) => !(body && name.startsWith("content-")) && !(elsewhere && !HARMLESS.has(name)),
  );
  return new Headers(kept);
}
