import { isObject } from "./json.ts";

type Matcher = (whole: unknown) => boolean;

/** From this many on, the elements of an array are looked up by what they hold instead of one after another. */
const FEW = 8;

/**
 * JSON containment as Postgres' `@>` defines it: every part of `part` is found in a whole. Arrays are compared as sets, and an
 * array contains a bare scalar at its top level only. The part is read once, for any number of wholes; the time for one is linear
 * in both, unless many elements of an array have the same leaves.
 */
export function containing(part: unknown): Matcher {
  const isIn = matcherOf(part);
  if (typeof part === "object" && part !== null) return isIn;
  return (whole) => (Array.isArray(whole) ? whole.includes(part) : isIn(whole));
}

function matcherOf(part: unknown): Matcher {
  if (Array.isArray(part)) return arrayMatcher(part);
  if (isObject(part)) return objectMatcher(part);
  return (whole) => whole === part;
}

function objectMatcher(part: object): Matcher {
  const members = Object.entries(part).map(([key, value]) => [key, matcherOf(value)] as const);
  return (whole) => isObject(whole) && members.every(([key, isIn]) => Object.hasOwn(whole, key) && isIn(whole[key]));
}

function arrayMatcher(part: readonly unknown[]): Matcher {
  const scalars = [...new Set(part.filter(isScalar))];
  const texts = new Set(part.filter((element) => !isScalar(element)).map((element) => JSON.stringify(element)));
  const others = [...texts].map((text) => {
    const element: unknown = JSON.parse(text);
    return { isIn: matcherOf(element), leaves: [...leavesOf(element)] };
  });
  return (whole) => {
    if (!Array.isArray(whole)) return false;
    const hasScalar = lookup(whole, scalars.length);
    if (!scalars.every(hasScalar)) return false;
    if (others.length <= FEW) return others.every(({ isIn }) => whole.some(isIn));
    const candidates = byLeaf(whole);
    return others.every(({ isIn, leaves }) => fewest(leaves.map((leaf) => candidates.get(leaf) ?? [])).some(isIn));
  };
}

function lookup(whole: readonly unknown[], times: number): (scalar: unknown) => boolean {
  if (times <= FEW) return (scalar) => whole.includes(scalar);
  const set = new Set(whole);
  return (scalar) => set.has(scalar);
}

/** The arrays and objects in an array, by each of their leaves. */
function byLeaf(whole: readonly unknown[]): Map<string, unknown[]> {
  const found = new Map<string, unknown[]>();
  for (const element of whole) {
    if (isScalar(element)) continue;
    for (const leaf of leavesOf(element)) {
      const known = found.get(leaf);
      if (known) known.push(element);
      else found.set(leaf, [element]);
    }
  }
  return found;
}

/**
 * What is in a value, each with the keys that lead to it: its scalars, and that there are its arrays and objects. What contains
 * the value has all of it.
 */
function leavesOf(value: unknown): Set<string> {
  const leaves = new Set<string>();
  const add = (part: unknown, path: string): void => {
    if (isScalar(part)) leaves.add(`${path}=${JSON.stringify(part)}`);
    else if (Array.isArray(part)) {
      leaves.add(`${path}[`);
      for (const item of part) add(item, `${path}[`);
    } else {
      leaves.add(`${path}{`);
      for (const [key, item] of Object.entries(part as object)) add(item, `${path}{${JSON.stringify(key)}`);
    }
  };
  add(value, "");
  return leaves;
}

/** The shortest of several lists. */
const fewest = <T>(lists: readonly T[][]): T[] =>
  lists.reduce((best, list) => (list.length < best.length ? list : best));

const isScalar = (value: unknown): boolean => typeof value !== "object" || value === null;
