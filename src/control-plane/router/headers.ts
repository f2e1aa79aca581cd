import type { IncomingMessage } from "node:http";
import type { Target } from "./routes.ts";

/** Where a request came from, for the instance to know. */
export interface Origin {
  /** The address of who is connected to us. */
  client: string;
  proto: string;
  /** The `Host` that was asked for. */
  host: string;
  /** What stands before the path in the address that was asked for; empty when the host name says it all. */
  prefix: string;
  /** Who calls. */
  user_id: string;
  /** Whether web pages of its origin, if it names one, may read answers of this service. */
  mayBeRead: boolean;
}

/** They are about one connection (RFC 9110, 7.6.1) and not about what is sent over it. */
const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** What the router says itself, or must not say: credentials of the caller are for us alone. */
const OURS = new Set([
  "host",
  "x-api-key",
  "authorization",
  "x-tenant-id",
  "x-threadmill-user",
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-prefix",
  "x-forwarded-proto",
  // Node has answered it.
  "expect",
  // Said by framingOf, whatever the header Connection names.
  "content-length",
]);

/**
 * They change what a browser does with everything of an origin. A deployment that is reached by a path shares the web app's; its
 * pages have an origin of their own there ("sandbox").
 */
const OF_THE_ORIGIN = new Set([
  "service-worker-allowed",
  "set-cookie",
  "clear-site-data",
  "strict-transport-security",
  "alt-svc",
  "nel",
  "report-to",
  "x-content-type-options",
]);

/** Headers that the header Connection names. They go no further than those that always stay. */
const namedIn = (connection: string | undefined): ReadonlySet<string> =>
  new Set(connection?.split(",").map((name) => name.trim().toLowerCase()));

/** Names and values in turns, of those whose name stays. */
function filtered(raw: readonly string[], stays: (name: string) => boolean): string[] {
  const kept: string[] = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string;
    if (stays(name.toLowerCase())) kept.push(name, raw[i + 1] as string);
  }
  return kept;
}

/** How long the body is, said in one way only. Node has refused requests that say it in two. */
function framingOf({ headers }: IncomingMessage): string[] {
  if (headers["transfer-encoding"] !== undefined) return ["Transfer-Encoding", "chunked"];
  return headers["content-length"] === undefined ? [] : ["Content-Length", headers["content-length"]];
}

/** Whether anything follows the headers. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

/** The headers with which an instance is asked, names and values in turns. */
export function requestHeaders(
  request: IncomingMessage,
  { api_key, hostname, port }: Target,
  origin: Origin,
): string[] {
  const named = namedIn(request.headers.connection);
  const kept = filtered(request.rawHeaders, (name) => !HOP_BY_HOP.has(name) && !OURS.has(name) && !named.has(name));
  const { "x-forwarded-for": before } = request.headers;
  kept.push("Host", `${hostname}:${port}`, ...framingOf(request));
  kept.push("X-Forwarded-For", before === undefined ? origin.client : `${before}, ${origin.client}`);
  kept.push("X-Forwarded-Proto", origin.proto, "X-Forwarded-Host", origin.host);
  if (origin.prefix !== "") kept.push("X-Forwarded-Prefix", origin.prefix);
  // Names of users are any text, headers are ASCII.
  kept.push("X-Api-Key", api_key, "x-threadmill-user", encodeURI(origin.user_id.toWellFormed()));
  return kept;
}

/**
 * The headers of an instance's answer as the client gets them, names and values in turns.
 *
 * @param mayBeRead whether pages of the origin that asks may read answers of this service at all
 */
export function responseHeaders(
  { headers, rawHeaders, statusCode = 0 }: IncomingMessage,
  { address }: Target,
  { prefix, mayBeRead }: Pick<Origin, "prefix" | "mayBeRead">,
): string[] {
  const named = namedIn(headers.connection);
  const isBelow = prefix !== "";
  const stays = (name: string) =>
    !HOP_BY_HOP.has(name) &&
    !(isBelow && OF_THE_ORIGIN.has(name)) &&
    (name === "content-length" || !named.has(name)) &&
    (mayBeRead || !name.startsWith("access-control-"));
  const kept = filtered(rawHeaders, stays);
  if (isBelow) kept.push("Content-Security-Policy", "sandbox", "X-Content-Type-Options", "nosniff");
  if (statusCode < 300 || statusCode >= 400) return kept;
  return kept.map((text, i) => (kept[i - 1]?.toLowerCase() === "location" ? below(text, address, prefix) : text));
}

/**
 * Where a redirect of an instance leads to from outside. Only redirects are changed: the clients put the `Location` of a
 * stream, with which they come back to it, behind their base URL, and that ends with the prefix already.
 */
function below(location: string, address: string, prefix: string): string {
  const path = location.startsWith(`${address}/`) ? location.slice(address.length) : location;
  return path.startsWith("/") && !path.startsWith("//") ? prefix + path : location;
}
