import type { Context, HonoRequest } from "hono";
import type { Env } from "./route.ts";

export interface BaseUrlOptions {
  /** The public URL of this server. */
  public_url: string | undefined;
  /** Path prefix of all routes, or an empty string. */
  prefix: string;
}

/** The configured URL of this server, or else the URL of the request. */
export const baseUrlOf = ({ req }: Context<Env>, { public_url, prefix }: BaseUrlOptions): string =>
  public_url ?? requestOrigin(req) + prefix;

/** The origin of a request, from its `Host` header. A host in the request line is ignored. */
export function requestOrigin(req: HonoRequest): string {
  const url = URL.parse(`http://${req.header("host") ?? ""}`);
  return (url ?? new URL(req.url)).origin;
}

/** URLs in a response start with the mount of the request, because a proxy may forward this mount only. */
export const mountOf = ({ req }: Context<Env>, mounts: readonly string[], { prefix }: BaseUrlOptions): string =>
  mounts.find((mount) => mount !== "" && pathBelow(prefix, req.path)?.startsWith(`${mount}/`)) ?? "";

/** The part of a path after the prefix, or undefined. */
export function pathBelow(prefix: string, path: string): string | undefined {
  return path === prefix || path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : undefined;
}
