import type { Context, HonoRequest } from "hono";
import type { Env } from "./route.ts";

export interface BaseUrlOptions {
  /** The public URL of this server. */
  public_url: string | undefined;
  /** Path prefix of all routes, or an empty string. */
  prefix: string;
}

/** The URL of this server: the configured one, or else the one of the request. */
export const baseUrlOf = ({ req }: Context<Env>, { public_url, prefix }: BaseUrlOptions): string =>
  public_url ?? requestOrigin(req) + prefix;

/** The origin of a request, from its `Host` header. A host in the request line is ignored. */
export function requestOrigin(req: HonoRequest): string {
  const url = URL.parse(`http://${req.header("host") ?? ""}`);
  return (url ?? new URL(req.url)).origin;
}

/** The mount of a request. URLs in the response start with it, because a proxy may forward only this mount. */
export const mountOf = ({ req }: Context<Env>, mounts: readonly string[], { prefix }: BaseUrlOptions): string =>
  mounts.find((mount) => mount !== "" && pathBelow(prefix, req.path)?.startsWith(`${mount}/`)) ?? "";

/** The part of a path after the prefix of all routes; undefined for other paths. */
export function pathBelow(prefix: string, path: string): string | undefined {
  return path === prefix || path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : undefined;
}
