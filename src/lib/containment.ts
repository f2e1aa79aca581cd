import { isObject } from "./json.ts";

type Matcher = (whole: unknown) => boolean;

/** From this many on, the elements of an array are looked up by what they hold instead of one after another. */
const FEW = 8;

/**
 * JSON containment as Postgres' `@>` defines it: every part of `part` is found in a whole. Arrays are compared as sets, and an
 * array contains a bare scalar at its top level only. The part is read once, for any number of wholes; the time for one is linear
 * in both, unless many objects in an array have all their plain fields in common.
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
    return { isIn: matcherOf(element), fields: isObject(element) ? fieldsOf(element) : [] };
  });
  return (whole) => {
    if (!Array.isArray(whole)) return false;
    const hasScalar = lookup(whole, scalars.length);
    if (!scalars.every(hasScalar)) return false;
    const candidates = others.length > FEW ? byField(whole) : undefined;
    return others.every(({ isIn, fields }) => {
      const among = candidates ? fewest(fields.map((field) => candidates.get(field) ?? [])) : undefined;
      return (among ?? whole).some(isIn);
    });
  };
}

function lookup(whole: readonly unknown[], times: number): (scalar: unknown) => boolean {
  if (times <= FEW) return (scalar) => whole.includes(scalar);
  const set = new Set(whole);
  return (scalar) => set.has(scalar);
}

/** The objects of an array by each plain field that they have. */
function byField(whole: readonly unknown[]): Map<string, object[]> {
  const found = new Map<string, object[]>();
  for (const element of whole) {
    if (!isObject(element)) continue;
    for (const field of fieldsOf(element)) {
      const known = found.get(field);
      if (known) known.push(element);
      else found.set(field, [element]);
    }
  }
  return found;
}

const fieldsOf = (object: object): string[] =>
  Object.entries(object).flatMap(([key, value]) => (isScalar(value) ? [JSON.stringify([key, value])] : []));

/** The shortest list; undefined when there is none to choose from. */
function fewest<T>(lists: readonly T[][]): T[] | undefined {
  let best = lists[0];
  for (const list of lists) if (best === undefined || list.length < best.length) best = list;
  return best;
}

const isScalar = (value: unknown): boolean => typeof value !== "object" || value === null;
