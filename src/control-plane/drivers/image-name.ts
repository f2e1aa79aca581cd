import { DeployError } from "./driver.ts";

const SETTING = "THREADMILL_DOCKER_REGISTRIES";

/** Parsed image reference, including the parts that Docker adds to a short name. */
export interface ImageName {
  /** Registry host in lower case, with the port. */
  host: string;
  /** Repository, including the host. */
  repository: string;
  /** A tag, or a digest in the form `sha256:...`. */
  version: string;
}

/** Host in the names of local images without a registry, as in Podman. */
export const LOCAL_HOST = "localhost";

const PART = "[a-z0-9]+(?:(?:\\.|__?|-+)[a-z0-9]+)*";
const REPOSITORY = new RegExp(`^${PART}(?:/${PART})*$`);
const HOST = /^[a-z0-9-]+(\.[a-z0-9-]+)*(:\d+)?$/;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;

/**
 * Parses an image name as Docker does; undefined if it is invalid. Only complete names are sent to the API: Docker could interpret a bare
 * name as the prefix of an image ID.
 */
export function nameOf(image: string): ImageName | undefined {
  const [named = "", digest, ...rest] = image.split("@");
  const colon = named.lastIndexOf(":");
  // A colon before the last slash separates the port.
  const hasTag = colon > named.lastIndexOf("/");
  const whole = hasTag ? named.slice(0, colon) : named;
  const tag = hasTag ? named.slice(colon + 1) : "latest";
  const { host, path } = splitHost(whole);
  const isName = HOST.test(host) && REPOSITORY.test(path) && TAG.test(tag) && rest.length === 0;
  if (!isName || (digest !== undefined && !DIGEST.test(digest))) return undefined;
  return { host, repository: `${host}/${path}`, version: digest ?? tag };
}

function splitHost(whole: string): { host: string; path: string } {
  const slash = whole.indexOf("/");
  const first = whole.slice(0, Math.max(0, slash)).toLowerCase();
  const hasHost = first.includes(".") || first.includes(":") || first === LOCAL_HOST;
  const host = !hasHost || first === "index.docker.io" ? "docker.io" : first;
  const path = hasHost ? whole.slice(slash + 1) : whole;
  return { host, path: host === "docker.io" && !path.includes("/") ? `library/${path}` : path };
}

export const fullName = ({ repository, version }: ImageName): string =>
  `${repository}${DIGEST.test(version) ? "@" : ":"}${version}`;

/** Each entry is a registry host or a repository prefix. */
const isListed = ({ repository }: ImageName, registries: readonly string[]): boolean =>
  registries.some((entry) => repository === entry || repository.startsWith(`${entry}/`));

/** Whether a name is an image ID, which is valid only on one Docker Engine. */
export const isId = (image: string): boolean => DIGEST.test(image);

/** @throws DeployError when the name is invalid or its registry is not allowed */
export function requireListed(image: string, registries: readonly string[]): ImageName {
  const name = nameOf(image);
  if (!name) throw new DeployError(`"${image}" is not a valid image name: use a name such as host/name:tag.`);
  if (isListed(name, registries)) return name;
  throw new DeployError(
    `The image repository ${name.repository} is not allowed: add ${name.repository} or ${name.host} to ${SETTING}.`,
  );
}
