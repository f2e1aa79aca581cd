/** What an object may have that is searched, or that a search looks for: they are compared row by row. */
const MOST = { bytes: 65_536, keys: 1_000, levels: 20 };

/** Why an object is too large to be searched or to be looked for; undefined when it is not. */
export function whyNotSearchable(object: object): string | undefined {
  let keys = 0;
  const isWithin = (value: unknown, level: number): boolean => {
    if (typeof value !== "object" || value === null) return true;
    if (level > MOST.levels) return false;
    // Arrays and objects in an array take as long to look for as members of an object.
    keys += Array.isArray(value) ? value.filter((item) => typeof item === "object").length : Object.keys(value).length;
    return keys <= MOST.keys && Object.values(value).every((item) => isWithin(item, level + 1));
  };
  if (!isWithin(object, 1))
    return keys > MOST.keys
      ? `has more than ${MOST.keys} keys and elements that are lists or objects`
      : `nests more than ${MOST.levels} levels deep`;
  return new TextEncoder().encode(JSON.stringify(object)).length > MOST.bytes
    ? `has more than ${MOST.bytes} bytes as JSON`
    : undefined;
}
