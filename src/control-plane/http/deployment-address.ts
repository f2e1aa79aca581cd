export interface DeploymentAddress {
  slug: string;
  /** Path and query as the instance receives them. */
  path: string;
  /** The requested path before `path`; empty when the host name addresses the deployment. */
  prefix: string;
  /** With `localhost` a request is for the service itself when the deployment does not exist. */
  by: "path" | "domain" | "localhost";
}

export interface AddressOptions {
  /** Path prefix of all routes; empty for none. */
  prefix: string;
  /** `{slug}.<domain>` is a deployment. */
  deployments_domain: string | undefined;
  /** On a loopback address `{slug}.localhost` is a deployment, too. */
  is_loopback: boolean;
}

/** The normalized `Host`: without port and in lower case. */
export const hostOf = (host: string | undefined): string => (host ?? "").replace(/:\d+$/, "").toLowerCase();

const SLUG = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;

export const isSlug = (text: string): boolean => text.length <= 63 && SLUG.test(text);

/**
 * The deployment that a request addresses by its host name or path; undefined for other requests. The path is not decoded or
 * normalized: the instance receives it unchanged.
 *
 * @param url path and query of the request line
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

/** A segment `.` or `..`, also percent-encoded or with a backslash: a server on the way could resolve it. */
const DOT_SEGMENT = /(^|[/\\]|%2f|%5c)(\.|%2e){1,2}([/\\?#]|%2f|%5c|$)/i;

/** Whether a path starts at the root and has no dot segments. */
export const isNormalizedPath = (path: string): boolean =>
  path.startsWith("/") && !DOT_SEGMENT.test(path.split("?", 1)[0] as string);
