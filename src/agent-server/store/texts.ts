/** Returns the texts at a path (see `TEXT_PATH`) of a JSON value: strings as they are, other values as JSON. Omits null values. */
export function textsAt(value: unknown, path: string): string[] {
  let found: unknown[] = [value];
  if (path !== "$")
    for (const [, field, index] of path.matchAll(/([^.[\]]+)|\[([^\]]+)\]/g))
      found = found.flatMap((part) => (field === undefined ? itemsAt(part, index as string) : memberOf(part, field)));
  return found.filter((part) => part !== null).map((part) => (typeof part === "string" ? part : JSON.stringify(part)));
}

const memberOf = (part: unknown, field: string): unknown[] =>
  typeof part === "object" && part !== null && Object.hasOwn(part, field)
    ? [(part as Record<string, unknown>)[field]]
    : [];

function itemsAt(part: unknown, index: string): unknown[] {
  if (!Array.isArray(part)) return [];
  if (index === "*") return part;
  const item = part.at(Number(index));
  return item === undefined ? [] : [item];
}
