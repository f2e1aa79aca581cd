import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";

const root = realpathSync(mkdtempSync(join(tmpdir(), "threadmill-resolution-")));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const CACHE = new URL("../../src/agent-server/graph-hosts/inside/loading/resolution-cache.ts", import.meta.url);

function write(files: Record<string, string>): void {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), content);
  }
}

/** Imports each specifier from node_modules/a, and returns what each import found or its error. */
function imports(specifiers: string[], flags: string[] = []): unknown {
  write({
    "node_modules/a/lib/entry.js": `
      export const results = {};
      for (const specifier of ${JSON.stringify(specifiers)}) {
        try { const found = await import(specifier); results[specifier] = [found.url, found.loads, found.c, Object.keys(found)]; }
        catch (error) { results[specifier] = error.code ?? error.message; }
      }`,
    "main.mjs": `import { results } from "./node_modules/a/lib/entry.js"; console.log(JSON.stringify(results));`,
  });
  return JSON.parse(execFileSync(process.execPath, [...flags, "main.mjs"], { cwd: root, encoding: "utf8" }));
}

test("finds the modules that Node.js finds, each once", () => {
  const shows =
    "export const url = import.meta.url; export const loads = (globalThis[url] = (globalThis[url] ?? 0) + 1);";
  const commonJs = "exports.file = __filename;";
  write({
    "node_modules/a/package.json": `{ "name": "a", "type": "module", "imports": { "#own": "./lib/own.js" }, "exports": { "./self": "./lib/self.js" } }`,
    "node_modules/a/lib/own.js": shows,
    "node_modules/a/lib/self.js": shows,
    "node_modules/a/lib/plain.js": shows,
    "node_modules/a/lib/explicit.mjs": shows,
    "node_modules/a/lib/old.cjs": commonJs,
    "node_modules/a/lib/data.json": "{}",
    "node_modules/a/lib/folder.js/index.js": shows,
    "node_modules/a/lib/with space/plain.js": shows,
    "node_modules/a/lib/cjs/package.json": `{ "type": "commonjs" }`,
    "node_modules/a/lib/cjs/plain.js": commonJs,
    "node_modules/a/lib/broken/package.json": "{",
    "node_modules/a/lib/broken/plain.js": shows,
    "node_modules/a/node_modules/b/package.json": `{ "name": "b", "exports": { ".": { "import": "./index.mjs", "require": "./index.cjs" } } }`,
    "node_modules/a/node_modules/b/index.mjs": `${shows} export { url as c } from "c";`,
    "node_modules/a/node_modules/b/node_modules/c/package.json": `{ "name": "c", "type": "module", "main": "inner.js" }`,
    "node_modules/a/node_modules/b/node_modules/c/inner.js": shows,
    "node_modules/c/package.json": `{ "name": "c" }`,
    "node_modules/c/index.js": "export const url = import.meta.url; export const detected = true;",
    "store/d/package.json": `{ "name": "d", "type": "module", "main": "index.js" }`,
    "store/d/index.js": `${shows} export { url as inner } from "./inner.js";`,
    "store/d/inner.js": shows,
  });
  symlinkSync(join(root, "store/d"), join(root, "node_modules/d"));
  symlinkSync("plain.js", join(root, "node_modules/a/lib/link.js"));
  const specifiers = [
    ...["./plain.js", "../lib/plain.js", "./link.js", "./plain.js?query", "./explicit.mjs", "./old.cjs", "./data.json"],
    ...["./folder.js", "./with space/plain.js", "./with%20space/plain.js", "./cjs/plain.js", "./broken/plain.js"],
    ...["./missing.js", "../missing/missing.js", "../../c/index.js", "../../../store/d/index.js"],
    ...["#own", "a/self", "a/missing", "b", "b/missing", "c", "d", "missing", "node:module", "events"],
  ];
  const native = imports(specifiers);
  expect(native).toMatchObject({
    "./plain.js": { 0: expect.stringContaining("/a/lib/plain.js"), 1: 1 },
    "./missing.js": "ERR_MODULE_NOT_FOUND",
  });
  expect(imports(specifiers, ["--import", CACHE.href])).toEqual(native);
});
