/** What a request names a deployment by. */
export interface DeploymentAddress {
  slug: string;
  /** Path and query as the deployment's own server knows them. */
  path: string;
  /** What stands before that in the path that was asked for; empty when the host name says it all. */
  prefix: string;
  /** Under `localhost` a request is the service's own when there is no such deployment: those are names of its own, too. */
  by: "path" | "domain" | "localhost";
}

export interface AddressOptions {
  /** Path prefix of all routes; empty for none. */
  prefix: string;
  /** `{slug}.<domain>` is a deployment. */
  deployments_domain: string | undefined;
  /** On a loopback address `{slug}.localhost` is one, too. */
  is_loopback: boolean;
}

/** `Host` as it is compared: without port and in lower case. */
export const hostOf = (host: string | undefined): string => (host ?? "").replace(/:\d+$/, "").toLowerCase();

const SLUG = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;

/** Whether a text could be a slug; what could not is not looked for. */
export const isSlug = (text: string): boolean => text.length <= 63 && SLUG.test(text);

/**
 * Which deployment a request is for, by its host name or by its path; undefined for everything else. Nothing is decoded or
 * resolved: what stands there is what the deployment's own server gets.
 *
 * @param url path and query as the request line has them
 */
export function addressOf(
  { url, host }: { url: string; host: string | undefined },
  { prefix, deployments_domain, is_loopback }: AddressOptions,
): DeploymentAddress | undefined {
  const name = hostOf(host);
  if (deployments_domain !== undefined && name.endsWith(`.${deployments_domain}`))
    return { slug: name.slice(0, -deployments_domain.length - 1), path: url, prefix: "", by: "domain" };
  const byPath = belowDeployments(url, `${prefix}/deployments/`);
  if (byPath || !is_loopback || !name.endsWith(".localhost")) return byPath;
  return { slug: name.slice(0, -".localhost".length), path: url, prefix: "", by: "localhost" };
}

function belowDeployments(url: string, start: string): DeploymentAddress | undefined {
  if (!url.startsWith(start)) return undefined;
  const [slug = ""] = url.slice(start.length).split(/[/?#]/, 1);
  if (slug === "") return undefined;
  const rest = url.slice(start.length + slug.length);
  return { slug, path: rest.startsWith("/") ? rest : `/${rest}`, prefix: start + slug, by: "path" };
}

/** A part that a server between here and the graph could take for the way up, written in any way. */
const DOTS = /(^|[/\\]|%2f|%5c)(\.|%2e){1,2}([/\\?#]|%2f|%5c|$)/i;

/** Whether a path says plainly where it leads: from the root, without `.` and `..`. */
export const isPlain = (path: string): boolean => path.startsWith("/") && !DOTS.test(path.split("?", 1)[0] as string);
