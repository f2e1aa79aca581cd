import { globSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { findInDocument, findInSource } from "./vocabulary.ts";

const ROOT = resolve(import.meta.dirname, "..");

/** docs/glossary.md has the terms; structure and reasons are in vocabulary.ts. */
describe("the vocabulary", () => {
  it.each(["src", "web/src", "bin", "bench", "examples"])("of %s has no banned term, in names or texts", (folder) => {
    // Statements of migrations that databases have applied do not change.
    const files = globSync(`${folder}/**/*.{ts,tsx,mjs,js}`, { cwd: ROOT, exclude: ["**/migrations/[0-9]*"] });
    expect(files.length).toBeGreaterThan(0);
    expect(files.flatMap((file) => findInSource(join(ROOT, file), "all"))).toEqual([]);
  });

  it("of the tests has no banned term, in names or titles", () => {
    const files = globSync("test/**/*.ts", { cwd: ROOT, exclude: ["test/vocabulary*.ts"] });
    expect(files.flatMap((file) => findInSource(join(ROOT, file), "titles"))).toEqual([]);
  });

  it("of the documents has no banned term", () => {
    const files = globSync(["*.md", "{docs,examples,web}/**/*.md"], {
      cwd: ROOT,
      exclude: ["**/node_modules/**", "CHANGELOG.md"],
    });
    expect(files.flatMap((file) => findInDocument(join(ROOT, file)))).toEqual([]);
  });

  it.each([
    ["const taskKeeper = 1;", "taskKeeper"],
    ["const MOST_ROWS = 1;", "MOST_ROWS"],
    ["/** Whoever waits. */ const a = 1;", "/** Whoever waits. */"],
    ['log.warn("nobody listens");', "nobody listens"],
    ["const a = <b>Tell me</b>;", "Tell me"],
  ])("is checked in %j", (source, text) => {
    expect(findInSource("a.tsx", "all", source)).toEqual([expect.objectContaining({ place: "a.tsx:1", text })]);
  });

  it.each([
    ['it.each([1])("tells %s", () => send("nobody"));', '"tells %s"'],
    ["describeInBrowser(`whoever opens it`, () => undefined);", "`whoever opens it`"],
  ])("is checked in the titles of %j only", (source, text) => {
    expect(findInSource("a.test.ts", "titles", source)).toEqual([expect.objectContaining({ text })]);
  });
});
