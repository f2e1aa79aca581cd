import type { Context, HonoRequest } from "hono";
import type { Env } from "./route.ts";

export interface BaseUrlOptions {
  /** Our own address, as others reach it. */
  public_url: string | undefined;
  /** Path prefix of all routes; empty for none. */
  prefix: string;
}

/** The address of this service: the configured one, or else the one that the caller has used. */
export const baseUrlOf = ({ req }: Context<Env>, { public_url, prefix }: BaseUrlOptions): string =>
  public_url ?? originAskedFor(req) + prefix;

/** The origin by which a request came, as its `Host` says. A request line may name another host, which counts for nothing here. */
export function originAskedFor(req: HonoRequest): string {
  const asked = URL.parse(`http://${req.header("host") ?? ""}`);
  return (asked ?? new URL(req.url)).origin;
}

/** The mount below which a request came: what is handed out leads back through it, as a proxy may know no other. */
export const mountOf = ({ req }: Context<Env>, mounts: readonly string[], { prefix }: BaseUrlOptions): string =>
  mounts.find((mount) => mount !== "" && pathBelow(prefix, req.path)?.startsWith(`${mount}/`)) ?? "";

/** A path below the prefix of all routes. Undefined outside of it, where nothing is. */
export function pathBelow(prefix: string, path: string): string | undefined {
  return path === prefix || path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : undefined;
}
