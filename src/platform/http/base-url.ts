import type { Context, HonoRequest } from "hono";
import type { Env } from "./route.ts";

export interface BaseUrlOptions {
  /** The public URL of this server. */
  public_url: string | undefined;
  /** Path prefix of all routes, or an empty string. */
  prefix: string;
}

/** Returns the public URL of this server: the configured one, or else the origin of the request with the prefix. */
export const baseUrlOf = ({ req }: Context<Env>, { public_url, prefix }: BaseUrlOptions): string =>
  public_url ?? requestOrigin(req) + prefix;

/** Returns the origin of a request from its `Host` header, even if the request line contains another host. */
export function requestOrigin(req: HonoRequest): string {
  const url = URL.parse(`http://${req.header("host") ?? ""}`);
  return (url ?? new URL(req.url)).origin;
}

/** Returns the mount point in the path of a request, or "". URLs in the response start with it: a proxy may forward this mount point only. */
export const mountOf = ({ req }: Context<Env>, mounts: readonly string[], { prefix }: BaseUrlOptions): string =>
  mounts.find((mount) => mount !== "" && pathBelow(prefix, req.path)?.startsWith(`${mount}/`)) ?? "";

/** Returns the part of a path after the prefix; undefined if the path does not start with the prefix. */
export function pathBelow(prefix: string, path: string): string | undefined {
  return path === prefix || path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : undefined;
}

/**
 * Whether a request with `Origin` or `Sec-Fetch-Site` comes from a page of this service, or from the user. Browsers omit the latter on
 * unencrypted connections.
 *
 * @param header returns the value of a header by its lower-case name
 */
export function isFromOwnPage(
  header: (name: string) => string | null | undefined,
  { public_url }: Pick<BaseUrlOptions, "public_url">,
): boolean {
  const site = header("sec-fetch-site");
  if (site != null) return site === "same-origin" || site === "none";
  const origin = URL.parse(header("origin") ?? "");
  if (!origin) return false;
  return (
    origin.host === (header("host")?.toLowerCase() ?? "") ||
    (public_url !== undefined && new URL(public_url).origin === origin.origin)
  );
}
