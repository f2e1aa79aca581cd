/** Room for a host name's label (63) with a suffix. */
const MAX_CHARS = 50;

/** A name as paths and host names can have it: `My Agent` is `my-agent`. Two names may have the same. */
export function slugOf(name: string): string {
  const plain = name.normalize("NFKD").replaceAll(/\p{M}/gu, "").toLowerCase();
  const slug = plain.replaceAll(/[^a-z0-9]+/g, "-").slice(0, MAX_CHARS);
  return slug.replaceAll(/^-+|-+$/g, "") || "deployment";
}
