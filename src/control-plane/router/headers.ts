import type { IncomingMessage } from "node:http";
import { ApiError } from "../../platform/errors.ts";
import type { Target } from "./routes.ts";

/**
 * The sender of a request: an authenticated caller of this service, a client without credentials of this service, or any client that reads a
 * public file. A service without keys has a `user_id` for clients without credentials.
 */
export type Client =
  | { kind: "known"; user_id: string; is_admin: boolean }
  | { kind: "unknown"; user_id: string | undefined }
  | { kind: "public" };

/** Origin of a request, which the instance receives in headers. */
export interface Origin {
  /** IP address of the connected client. */
  client: string;
  proto: string;
  /** Value of the request header `Host`. */
  host: string;
  /** Part of the requested path before the instance's path; empty if the host name identifies the deployment. */
  prefix: string;
  sender: Client;
  /** Whether pages of the request's `Origin` may read responses of this service. */
  corsAllowed: boolean;
}

/** Headers that apply to a single connection (RFC 9110, 7.6.1). */
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

/** The credentials of a caller are for this service only, unless the instance authenticates users. */
const CREDENTIAL_HEADERS = new Set(["x-api-key", "authorization"]);

/** Headers that the router sets or removes. */
const REPLACED_HEADERS = new Set([
  "host",
  "x-tenant-id",
  "x-threadmill-user",
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-prefix",
  "x-forwarded-proto",
  // Node.js answers `Expect: 100-continue` itself.
  "expect",
  // Set by framingOf, even if the header `Connection` lists this header.
  "content-length",
]);

/**
 * Response headers that affect a whole origin in a browser, or that the router replaces. They are removed for a deployment below a path,
 * which shares the origin of the web app. Pages of such a deployment get an opaque origin ("sandbox").
 */
const ORIGIN_WIDE_HEADERS = new Set([
  "service-worker-allowed",
  "set-cookie",
  "clear-site-data",
  "strict-transport-security",
  "alt-svc",
  "nel",
  "report-to",
  "x-content-type-options",
]);

/** Returns the names in the header `Connection`, which lists further headers that apply to a single connection. */
const namedIn = (connection: string | undefined): ReadonlySet<string> =>
  new Set(connection?.split(",").map((name) => name.trim().toLowerCase()));

/** Filters a flat list of alternating names and values. */
function filtered(raw: readonly string[], isKept: (name: string) => boolean): string[] {
  const kept: string[] = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string;
    if (isKept(name.toLowerCase())) kept.push(name, raw[i + 1] as string);
  }
  return kept;
}

/** Framing header of the body: Content-Length or Transfer-Encoding. Node.js rejects requests with both headers. */
function framingOf({ headers }: IncomingMessage): string[] {
  if (headers["transfer-encoding"] !== undefined) return ["Transfer-Encoding", "chunked"];
  return headers["content-length"] === undefined ? [] : ["Content-Length", headers["content-length"]];
}

/** Whether the request has a body. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

/**
 * What an instance receives to identify the sender: the key of the instance, the credentials of the request if the handlers of the project
 * authenticate users, or nothing. The handlers do not restrict the key, so only administrators are admitted with it.
 *
 * @throws ApiError unauthorized or missing_scope if the instance must not receive the request
 */
export function identification({ custom_auth }: Pick<Target, "custom_auth">, sender: Client): "key" | "own" | "none" {
  if (sender.kind === "public") return "none";
  if (sender.kind === "unknown" && custom_auth) return "own";
  if (sender.user_id === undefined) throw new ApiError("unauthorized");
  if (sender.kind === "known" && custom_auth && !sender.is_admin)
    throw new ApiError("missing_scope", { scope: "admin" });
  return "key";
}

/** The headers of the request to an instance, as a flat list of alternating names and values. */
export function requestHeaders(request: IncomingMessage, target: Target, origin: Origin): string[] {
  const { api_key, hostname, port } = target;
  const { sender } = origin;
  const identity = identification(target, sender);
  const named = namedIn(request.headers.connection);
  const kept = filtered(
    request.rawHeaders,
    (name) =>
      !HOP_BY_HOP.has(name) &&
      !REPLACED_HEADERS.has(name) &&
      (identity === "own" || !CREDENTIAL_HEADERS.has(name)) &&
      !named.has(name),
  );
  const { "x-forwarded-for": before } = request.headers;
  kept.push("Host", `${hostname}:${port}`, ...framingOf(request));
  kept.push("X-Forwarded-For", before === undefined ? origin.client : `${before}, ${origin.client}`);
  kept.push("X-Forwarded-Proto", origin.proto, "X-Forwarded-Host", origin.host);
  if (origin.prefix !== "") kept.push("X-Forwarded-Prefix", origin.prefix);
  // User IDs can contain any character, but headers must be ASCII.
  if (identity === "key" && sender.kind !== "public" && sender.user_id !== undefined)
    kept.push("X-Api-Key", api_key, "x-threadmill-user", encodeURI(sender.user_id.toWellFormed()));
  return kept;
}

/** The headers of the response to the client, as a flat list of alternating names and values. */
export function responseHeaders(
  { headers, rawHeaders, statusCode = 0 }: IncomingMessage,
  { address }: Target,
  { prefix, corsAllowed }: Pick<Origin, "prefix" | "corsAllowed">,
): string[] {
  const named = namedIn(headers.connection);
  const isBelow = prefix !== "";
  const isKept = (name: string) =>
    !HOP_BY_HOP.has(name) &&
    !(isBelow && ORIGIN_WIDE_HEADERS.has(name)) &&
    (name === "content-length" || !named.has(name)) &&
    (corsAllowed || !name.startsWith("access-control-"));
  const kept = filtered(rawHeaders, isKept);
  if (isBelow) kept.push("Content-Security-Policy", "sandbox", "X-Content-Type-Options", "nosniff");
  if (statusCode < 300 || statusCode >= 400) return kept;
  return kept.map((text, i) => (kept[i - 1]?.toLowerCase() === "location" ? below(text, address, prefix) : text));
}

/**
 * Converts the location of a redirect of an instance to an external path. Only redirects are changed: clients append the `Location` of a
 * stream to a base URL that already ends with the prefix.
 */
function below(location: string, address: string, prefix: string): string {
  const path = location.startsWith(`${address}/`) ? location.slice(address.length) : location;
  return path.startsWith("/") && !path.startsWith("//") ? prefix + path : location;
}
