/** Returns the headers of a request that a setting selects. Header names are lower case. */
export type SelectHeaders = (headers: Readonly<Record<string, string>>) => Record<string, string>;

/** Headers that are selected only by their full names: a pattern such as `x-*` does not express the intent to store credentials. */
const CREDENTIALS: ReadonlySet<string> = new Set([
  "authorization",
  "cookie",
  "proxy-authorization",
  "x-api-key",
  "x-service-key",
  "x-tenant-id",
]);

/** Longer names are not selected: the matching time of a pattern with several `*` is polynomial in the length of the name. */
const MAX_NAME_LENGTH = 128;

/** @param includes names, in which `*` matches any text. `excludes` takes precedence. */
export function headerSelection(includes: readonly string[], excludes: readonly string[]): SelectHeaders {
  const names = new Set(includes.map((name) => name.toLowerCase()));
  const [isIncluded, isExcluded] = [matcherOf(includes), matcherOf(excludes)];
  const isSelected = (name: string) =>
    name.length <= MAX_NAME_LENGTH &&
    isIncluded(name) &&
    !isExcluded(name) &&
    (names.has(name) || !CREDENTIALS.has(name));
  return (headers) => Object.fromEntries(Object.entries(headers).filter(([name]) => isSelected(name)));
}

function matcherOf(patterns: readonly string[]): (name: string) => boolean {
  const expressions = patterns.map((pattern) => {
    const parts = pattern.toLowerCase().split("*");
    return new RegExp(`^${parts.map((part) => part.replaceAll(/[^\w-]/g, "\\$&")).join(".*")}$`);
  });
  return (name) => expressions.some((expression) => expression.test(name));
}
