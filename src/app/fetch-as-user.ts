import { type Caller, mayUse, type Scope } from "../platform/contract/caller.ts";
import type { App, Env } from "../platform/http/route.ts";

/** Headers that are not forwarded: the caller is already known, and the request does not come from a web page. */
const DROPPED_HEADERS = ["authorization", "host", "origin", "x-api-key", "x-tenant-id", "x-auth-scheme"];

/**
 * Sends requests from the project's code to this server as a user, with no scope other than `agents`: the author of a graph or an HTTP app
 * must not get access to keys and deployments when an administrator uses it.
 */
export const fetchAsUser =
  (served: Promise<App>, prefix: string, origin?: Env["Bindings"]["origin"]) =>
  async (owner: Pick<Caller, "tenant_id" | "user_id" | "user"> & { scopes: readonly string[] }, request: Request) => {
    const scopes: Scope[] = mayUse({ scopes: owner.scopes as Scope[] }, "agents") ? ["agents"] : [];
    const sent = new Request(urlBelow(prefix, request.url), request);
    for (const name of DROPPED_HEADERS) sent.headers.delete(name);
    const { tenant_id, user_id, user } = owner;
    const caller = { tenant_id, user_id, scopes, user };
    return (await served).fetch(sent, { caller, origin });
  };

/** Returns the URL with the path prefix of all routes added. */
export function urlBelow(prefix: string, text: string): URL {
  const url = new URL(text);
  url.pathname = prefix + url.pathname;
  return url;
}
