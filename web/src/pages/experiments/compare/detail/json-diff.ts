/** A path with different values in two JSON documents. A missing value is undefined. */
export interface Difference {
  /** Path such as `steps[2].name`. Empty for the document root. */
  path: string;
  before: unknown;
  after: unknown;
}

export interface JsonDifferences {
  differences: Difference[];
  same: number;
}

/** Returns the differences between two JSON values, in the key order of the second value. List items are compared by index. */
export function differencesOf(before: unknown, after: unknown): JsonDifferences {
  const found: JsonDifferences = { differences: [], same: 0 };
  compare(before, after, "", found);
  return found;
}

function compare(before: unknown, after: unknown, path: string, found: JsonDifferences): void {
  if (!isTree(before) || !isTree(after) || Array.isArray(before) !== Array.isArray(after)) {
    if (isSame(before, after)) found.same++;
    else found.differences.push({ path, before, after });
    return;
  }
  const isList = Array.isArray(after);
  for (const key of new Set([...Object.keys(after), ...Object.keys(before)])) {
    const at = isList ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`;
    compare(memberOf(before, key), memberOf(after, key), at, found);
  }
  if (Object.keys(before).length === 0 && Object.keys(after).length === 0) found.same++;
}

const isTree = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/** Reads own properties only, because `constructor` and similar keys are inherited. */
const memberOf = (tree: Record<string, unknown>, key: string): unknown =>
  Object.hasOwn(tree, key) ? tree[key] : undefined;

const isSame = (before: unknown, after: unknown): boolean =>
  before === after || (isTree(before) && isTree(after) && JSON.stringify(before) === JSON.stringify(after));
