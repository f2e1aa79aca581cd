import { globSync } from "node:fs";
import { expect, it } from "vitest";
import { SUITES } from "../suites.ts";

it("every pattern of a suite matches a file", () => {
  const patterns = Object.values(SUITES).flatMap(({ include, exclude = [] }) => [...include, ...exclude]);
  // A pattern such as {a,b} stands for a and b.
  const single = patterns.flatMap((pattern) => {
    const [, before, names, after] = /^([^{]*)\{([^}]*)\}(.*)$/.exec(pattern) ?? [];
    return names === undefined ? [pattern] : names.split(",").map((name) => `${before}${name}${after}`);
  });
  expect(single.filter((pattern) => globSync(pattern).length === 0)).toEqual([]);
});
