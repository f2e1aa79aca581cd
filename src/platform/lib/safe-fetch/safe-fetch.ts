import type { LookupFunction } from "node:net";
import { unlessAborted } from "../signal.ts";
import {
  type Address,
  addressOfHost,
  isLoopbackAddress,
  isLoopbackHost,
  isLoopbackName,
  isPublicAddress,
  type Lookup,
  systemLookup,
} from "./addresses.ts";

/**
 * Fetches a URL that a caller has supplied, and reads the complete response.
 *
 * @throws FetchRefusedError if the rules forbid the request; FetchFailedError if it fails; the reason of `init.signal` when it is
 * aborted
 */
export type SafeFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

const MAX_REDIRECTS = 5;

export function createSafeFetch(rules: FetchRules, limits: FetchLimits, lookup: Lookup = systemLookup): SafeFetch {
  return async (url, init) => {
    const refusal = urlRefusal(String(url), rules);
    if (refusal !== undefined) throw new FetchRefusedError(refusal);
    const request = new Request(url, init);
    const deadline = AbortSignal.timeout(limits.timeout_ms);
    const fetchContext = { rules, limits, lookup, signal: AbortSignal.any([deadline, request.signal]) };
    try {
      const { method, headers } = request;
      const body = request.body ? new Uint8Array(await request.arrayBuffer()) : undefined;
      return await follow(fetchContext, { url: new URL(request.url), method, headers, body }, request.redirect);
    } catch (error) {
      if (error instanceof FetchRefusedError || error instanceof FetchFailedError) throw error;
      if (request.signal.aborted) throw request.signal.reason;
      if (deadline.aborted) throw new FetchFailedError("timeout", `No response within ${limits.timeout_ms} ms.`);
      throw new FetchFailedError("unreachable", "The connection failed or was closed without a response.", error);
    }
  };
}

async function follow(context: FetchContext, first: Hop, redirect: Request["redirect"]): Promise<Response> {
  let hop = first;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const response = await sendRequest(context, hop);
    const next = redirect === "manual" ? undefined : nextHop(hop, response);
    if (next === undefined) return response;
    if (redirect === "error")
      throw new FetchRefusedError("The server responded with a redirect, which this request does not allow.");
    if (!mayFollow(hop.url, next.url, context.rules))
      throw new FetchRefusedError("The server responded with a redirect to a URL that is not allowed.");
    hop = next;
  }
  throw new FetchRefusedError(`The server responded with more than ${MAX_REDIRECTS} redirects.`);
}

const mayFollow = (from: URL, to: URL, rules: FetchRules): boolean =>
  urlRefusal(to.href, rules) === undefined && (to.protocol === "https:" || from.protocol === "http:");

interface FetchLimits {
  /** Total time, from DNS resolution to the last byte, over all redirects. */
  timeout_ms: number;
  /** Maximum size of the decompressed body. With `ignore_body` the response has no body, and the connection closes after the headers. */
  max_bytes: number | "ignore_body";
}

/** Shared by all requests of a redirect chain. */
interface FetchContext {
  rules: FetchRules;
  limits: FetchLimits;
  lookup: Lookup;
  signal: AbortSignal;
}

/** Sends one request on its own connection and reads the complete response. */
async function sendRequest({ rules, limits, lookup, signal }: FetchContext, hop: Hop): Promise<Response> {
  const addresses = await unlessAborted(signal, resolve(hop.url.hostname, lookup));
  // One forbidden address is enough to refuse the request, because the connection may use any of the addresses.
  if (addresses.length === 0 || !addresses.every(({ address }) => mayConnect(address, hop.url.protocol, rules)))
    throw new FetchRefusedError("The URL must refer to a host on the public internet.");
  // Loading the library at the first fetch saves 60 ms at startup. In the bundle of the npm package, a CommonJS module has no other exports.
  const { Agent, fetch } = (await import("undici")).default;
  const agent = new Agent({ pipelining: 0, connect: { lookup: pinnedLookup(addresses), timeout: limits.timeout_ms } });
  try {
    const { method, body = null } = hop;
    const headers = [...hop.headers] as [string, string][];
    const response = await fetch(hop.url, { method, headers, body, redirect: "manual", dispatcher: agent, signal });
    const { max_bytes } = limits;
    const bytes = max_bytes === "ignore_body" ? null : await readBody(response.body, max_bytes);
    const { status, statusText } = response;
    const whole = new Response(BODILESS_STATUSES.has(status) ? null : bytes, {
      status,
      statusText,
      headers: [...response.headers] as [string, string][],
    });
    return Object.defineProperty(whole, "url", { value: hop.url.href });
  } finally {
    await agent.destroy();
  }
}

const BODILESS_STATUSES = new Set([204, 205, 304]);

async function resolve(hostname: string, lookup: Lookup): Promise<readonly Address[]> {
  const address = addressOfHost(hostname);
  if (address !== undefined) return [{ address, family: address.includes(":") ? 6 : 4 }];
  return isLoopbackName(hostname) ? LOOPBACK : lookup(hostname);
}

const LOOPBACK: readonly Address[] = [
  { address: "127.0.0.1", family: 4 },
  { address: "::1", family: 6 },
];

/** Resolves every host to the checked addresses, because a second DNS lookup could return other ones (DNS rebinding). */
const pinnedLookup =
  (addresses: readonly Address[]): LookupFunction =>
  (_hostname, { all }, callback) => {
    const [first] = addresses;
    if (all) callback(null, [...addresses]);
    else if (first) callback(null, first.address, first.family);
  };

async function readBody(body: AsyncIterable<Uint8Array> | null, max_bytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.byteLength;
    if (size > max_bytes) throw new FetchFailedError("too_large", `The response is larger than ${max_bytes} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

/** One request of a chain of redirects. */
interface Hop {
  url: URL;
  method: string;
  headers: Headers;
  body: Uint8Array<ArrayBuffer> | undefined;
}

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** Headers without credentials, which may be sent to another origin. */
const PUBLIC_HEADERS = new Set(["accept", "accept-language", "user-agent"]);

/** Returns the next request: as in the Fetch standard, but stricter for other origins. Undefined if the response is not a redirect. */
function nextHop({ url, method, headers, body }: Hop, answer: Response): Hop | undefined {
  const location = answer.headers.get("location");
  if (location === null || !REDIRECTS.has(answer.status)) return undefined;
  if (!URL.canParse(location, url.href))
    throw new FetchRefusedError("The server responded with a redirect to an invalid URL.");
  const next = new URL(location, url);
  const crossOrigin = next.origin !== url.origin;
  if (becomesGet(answer.status, method)) {
    return { url: next, method: "GET", headers: headersFor(headers, { dropBody: true, crossOrigin }), body: undefined };
  }
  if (crossOrigin && body !== undefined)
    throw new FetchRefusedError(
      "The server responded with a redirect that would send the request body to another origin.",
    );
  return { url: next, method, headers: headersFor(headers, { dropBody: false, crossOrigin }), body };
}

const becomesGet = (status: number, method: string): boolean =>
  status === 303 ? method !== "GET" && method !== "HEAD" : (status === 301 || status === 302) && method === "POST";

function headersFor(headers: Headers, { dropBody, crossOrigin }: { dropBody: boolean; crossOrigin: boolean }): Headers {
  const allowed = [...headers].filter(
    ([name]) => !(dropBody && name.startsWith("content-")) && !(crossOrigin && !PUBLIC_HEADERS.has(name)),
  );
  return new Headers(allowed);
}

export interface FetchRules {
  /** Permits http and https to loopback addresses, for development and tests. */
  allow_loopback: boolean;
  /** Permits http and every port of public hosts. The caller has its own rules for both. */
  allow_http_and_all_ports?: boolean;
}

/** Names of home and company networks and of cloud metadata services. */
const PRIVATE_NAMES =
  /(^|\.)(localhost|local|localdomain|internal|intranet|private|lan|home|corp|home\.arpa|in-addr\.arpa|ip6\.arpa)$/;

/** Returns the reason why a URL may not be fetched, or undefined. The addresses of its host are checked when it is fetched. */
export function urlRefusal(url: string, rules: FetchRules): string | undefined {
  if (!URL.canParse(url)) return "The URL must be absolute, such as https://example.com/path.";
  const { protocol, username, password, port, hostname } = new URL(url);
  const local = rules.allow_loopback && isLoopbackHost(hostname);
  const mayUseHttp = local || rules.allow_http_and_all_ports;
  if (protocol !== "https:" && !(mayUseHttp && protocol === "http:")) return "The URL must begin with https://.";
  if (username !== "" || password !== "") return "The URL must not contain a user name or a password.";
  if (local) return undefined;
  if (!isPublicHost(hostname)) return "The URL must refer to a host on the public internet.";
  // The URL parser removes port 443. Other ports below 1024 belong to services that could misinterpret a request.
  if (port !== "" && Number(port) < 1024 && !rules.allow_http_and_all_ports)
    return "The URL must use port 443, or port 1024 or higher.";
  return undefined;
}

/** Expects a host name from the URL parser, which normalizes forms such as `0x7f.1`, `2130706433` and full-width digits. */
function isPublicHost(hostname: string): boolean {
  const address = addressOfHost(hostname);
  if (address !== undefined) return isPublicAddress(address);
  // A name without a dot belongs to the local network.
  return /^[^.].*\.[^.]+$/.test(hostname) && !PRIVATE_NAMES.test(hostname);
}

const mayConnect = (address: string, protocol: string, rules: FetchRules): boolean =>
  (rules.allow_loopback && isLoopbackAddress(address)) ||
  ((protocol === "https:" || rules.allow_http_and_all_ports === true) && isPublicAddress(address));

/** The rules forbid the request. The message is for the caller and reveals nothing about the target. */
export class FetchRefusedError extends Error {
  override name = "FetchRefusedError";
}

/** The request got no usable response. The message is for the caller, the cause for the log. */
export class FetchFailedError extends Error {
  override name = "FetchFailedError";
  readonly reason: "timeout" | "too_large" | "unreachable";

  constructor(reason: FetchFailedError["reason"], message: string, cause?: unknown) {
    super(message, { cause });
    this.reason = reason;
  }
}
