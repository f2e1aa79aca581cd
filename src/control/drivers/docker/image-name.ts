/** What the engine is asked to pull. Without a tag it would pull all of them. */
export interface ImageName {
  repository: string;
  /** A tag, or a digest as `sha256:...`. */
  tag: string;
}

export function nameOf(image: string): ImageName {
  const [named = "", digest] = image.split("@");
  const colon = named.lastIndexOf(":");
  // A colon before the last slash is that of a port.
  const hasTag = colon > named.lastIndexOf("/");
  const repository = hasTag ? named.slice(0, colon) : named;
  return { repository, tag: digest ?? (hasTag ? named.slice(colon + 1) : "latest") };
}

/** The id of an image, which only the engine that has it knows. */
export const isId = (image: string): boolean => /^sha256:[0-9a-f]{64}$/.test(image);

/** Whether a name means one image for ever: a digest, or the id of an image that is here, also the beginning of it. */
export const isExact = (image: string, id: string): boolean =>
  image.includes("@") || isId(image) || id.startsWith(`sha256:${image}`);

/**
 * What an image is called for good: by a digest that its registry knows, so that it can be pulled again; one that no registry has
 * by its id.
 */
export function exactName(
  image: string,
  { Id, RepoDigests }: { Id: string; RepoDigests?: readonly string[] | null },
): string {
  const { repository } = nameOf(image);
  const digests = RepoDigests ?? [];
  return digests.find((one) => one.startsWith(`${repository}@`)) ?? digests[0] ?? Id;
}
