/** An image reference, with the parts that Docker adds to a short one. */
export interface ImageName {
  /** In lower case, with its port. */
  host: string;
  /** Begins with the host. */
  repository: string;
  /** A tag, or a digest as `sha256:...`. */
  version: string;
}

/** Images below this name were tagged on this machine, as with Podman: no registry is asked for them. */
export const THIS_MACHINE = "localhost";

const PART = "[a-z0-9]+(?:(?:\\.|__?|-+)[a-z0-9]+)*";
const REPOSITORY = new RegExp(`^${PART}(?:/${PART})*$`);
const HOST = /^[a-z0-9-]+(\.[a-z0-9-]+)*(:\d+)?$/;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;

/**
 * Parses a name as the engine does. Only parsed names go into paths of the engine's API, always with host and tag: the engine would
 * take a bare one for the beginning of an id.
 */
export function nameOf(image: string): ImageName | undefined {
  const [named = "", digest, ...rest] = image.split("@");
  const colon = named.lastIndexOf(":");
  // A colon before the last slash is that of a port.
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
  const hasHost = first.includes(".") || first.includes(":") || first === THIS_MACHINE;
  const host = !hasHost || first === "index.docker.io" ? "docker.io" : first;
  const path = hasHost ? whole.slice(slash + 1) : whole;
  return { host, path: host === "docker.io" && !path.includes("/") ? `library/${path}` : path };
}

export const fullName = ({ repository, version }: ImageName): string =>
  `${repository}${DIGEST.test(version) ? "@" : ":"}${version}`;

/** Whether an entry of the list is its registry, or a prefix of its path there. */
export const isListed = ({ repository }: ImageName, registries: readonly string[]): boolean =>
  registries.some((entry) => repository === entry || repository.startsWith(`${entry}/`));

/** The id of an image, which only the engine that has it knows. */
export const isId = (image: string): boolean => DIGEST.test(image);
