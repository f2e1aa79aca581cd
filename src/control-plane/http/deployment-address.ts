export interface DeploymentAddress {
  slug: string;
  /** Path and query of the request to the instance. */
  path: string;
  /** The part of the requested path before `path`; empty if the host name identifies the deployment. */
  prefix: string;
  /** How the request identifies the deployment. With `localhost`, requests for an unknown deployment go to the service itself. */
  by: "path" | "domain" | "localhost";
}

export interface AddressOptions {
  /** Path prefix of all routes; empty for none. */
  prefix: string;
  /** Domain of deployments: `{slug}.<domain>` identifies a deployment. */
  deployments_domain: string | undefined;
  /** Whether the server listens on a loopback address. `{slug}.localhost` then also identifies a deployment. */
  is_loopback: boolean;
}

/** The normalized `Host`: without port and in lower case. */
export const hostOf = (host: string | undefined): string => (host ?? "").replace(/:\d+$/, "").toLowerCase();

const SLUG = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;

export const isSlug = (text: string): boolean => text.length <= 63 && SLUG.test(text);

/**
 * Finds the deployment in the host name or path of a request; undefined for other requests. The path is forwarded unchanged, neither
 * decoded nor normalized.
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

/** A segment `.` or `..`, also percent-encoded or with a backslash. A proxy could resolve such segments. */
const DOT_SEGMENT = /(^|[/\\]|%2f|%5c)(\.|%2e){1,2}([/\\?#]|%2f|%5c|$)/i;

/** Whether a path starts at the root and has no dot segments. */
export const isNormalizedPath = (path: string): boolean =>
  path.startsWith("/") && !DOT_SEGMENT.test(path.split("?", 1)[0] as string);
