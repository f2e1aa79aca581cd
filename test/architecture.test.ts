import { globSync, readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { POINTS } from "./crash/failpoints.ts";
import { MUTANTS, type Mutant } from "./mutants/mutants.ts";

const SRC = resolve(import.meta.dirname, "../src");

/** Which module (a folder or file at the top of src/) may import which, besides itself; types count. The table of ARCHITECTURE.md. */
const MAY_IMPORT: Record<string, string[]> = {
  platform: [],
  config: ["platform"],
  access: ["platform"],
  "agent-server": ["platform"],
  experiments: ["platform"],
  "control-plane": ["platform", "access"],
  app: ["platform", "config", "access", "agent-server", "experiments", "control-plane"],
  "main.ts": ["*"],
  cli: ["*"],
};

const PRODUCTS = ["access", "agent-server", "experiments", "control-plane"];

/** Packages that belong to one place, so that they can be exchanged there. */
const PACKAGE_HOMES: Record<string, RegExp> = {
  kysely: /(^|\/)storage\/|^platform\/database\/|^app\/compose\/open-data\.ts$/,
  pg: /^platform\/database\//,
  "node:sqlite": /^platform\/database\/|^agent-server\/storage\/data-check\.ts$/,
  hono: /(^|\/)http\/|^app\//,
  "@hono/zod-openapi": /(^|\/)(contract|http)\/|^app\//,
  "@hono/node-server": /^(platform\/http|app)\//,
  "@a2a-js/sdk": /^agent-server\/protocols\/a2a\//,
  "@ag-ui/core": /^agent-server\/protocols\/ag-ui\//,
  "@langchain/core": /^agent-server\/graph-hosts\/inside\//,
  "@langchain/langgraph": /^agent-server\/graph-hosts\/inside\//,
  "@langchain/langgraph-checkpoint": /^agent-server\/graph-hosts\/inside\//,
  "@modelcontextprotocol/server": /^agent-server\/protocols\/mcp\//,
  tsx: /^agent-server\/graph-hosts\/inside\//,
  "typescript-5": /^agent-server\/graph-hosts\/type-schemas\//,
  commander: /^cli\//,
  chokidar: /^cli\//,
  "@opentelemetry/otlp-exporter-base": /^platform\/lib\/otlp-exporter/,
  "@opentelemetry/otlp-transformer": /^(platform\/lib\/otlp-exporter|app\/metrics\.ts|experiments\/traces\/otlp\/)/,
  "@pydantic/genai-prices": /^experiments\/traces\//,
  re2js: /^experiments\/(traces|datasets)\//,
  ws: /^(app|cli|(platform|agent-server)\/http|control-plane\/drivers\/listener)\//,
  pino: /^platform\/lib\/log\.ts$/,
  jose: /^access\//,
  oauth4webapi: /^access\//,
  undici: /^platform\/lib\/safe-fetch/,
  "@bufbuild/protobuf": /^experiments\/traces\/otlp\//,
  "csv-parse": /^(cli|experiments\/datasets)\//,
  "csv-stringify": /^(cli|experiments\/serialization)\//,
  "@kubernetes/client-node": /^control-plane\/drivers\/kubernetes\//,
  dockerode: /^control-plane\/drivers\/docker\//,
  tar: /^(control-plane\/drivers|cli)\//,
};

interface Import {
  from: string;
  to: string;
  types: boolean;
  /** Whether it is a call of `import()`, which loads the file when it is needed. Such a file cannot be a part of its importer. */
  isLater: boolean;
}

const files = globSync("**/*.ts", { cwd: SRC }).sort();
const sources = new Map(files.map((file) => [file, readFileSync(join(SRC, file), "utf8")]));

const imports = importsOf(sources);

function importsOf(texts: ReadonlyMap<string, string>): Import[] {
  return [...texts].flatMap(([from, text]) =>
    [...text.matchAll(/(?:^|\n)\s*(?:import|export)\s+(type\s)?[^;"']*?from\s+"([^"]+)"|import\("([^"]+)"\)/g)].map(
      (match) => ({
        from,
        to: match[2] ?? match[3] ?? "",
        types: match[1] !== undefined,
        isLater: match[2] === undefined,
      }),
    ),
  );
}

/** The pages: they know the APIs by their contract alone. */
const WEB = resolve(import.meta.dirname, "../web/src");
const webFiles = globSync("**/*.{ts,tsx}", { cwd: WEB }).sort();
const webSources = new Map(webFiles.map((file) => [file, readFileSync(join(WEB, file), "utf8")]));
const webImports = importsOf(webSources);

/** What nothing has to import: the entries of worker threads. */
const threadEntries = new Set(
  [...sources].flatMap(([file, text]) =>
    [...text.matchAll(/new URL\("(\.\/[^"]+)", import\.meta\.url\)/g)].map(
      ([, entry]) => `${join(dirname(file), entry as string)}.ts`,
    ),
  ),
);

/** Entry points may be small: those of threads, and the index.ts with what other modules may use. */
const isEntryPoint = (file: string) => threadEntries.has(file) || file.endsWith("/index.ts");

const top = (file: string) => file.split("/")[0] as string;
const targetOf = ({ from, to }: Import) => relative(SRC, resolve(SRC, dirname(from), to));

function cyclesOf(nodes: readonly string[], edges: readonly Import[], target: (found: Import) => string): string[] {
  const graph = new Map(
    nodes.map((file) => [file, edges.filter((i) => i.from === file && i.to.startsWith(".")).map(target)]),
  );
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (file: string, path: string[]): void => {
    if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file].join(" -> "));
    else if (!done.has(file)) for (const next of graph.get(file) ?? []) visit(next, [...path, file]);
    done.add(file);
  };
  for (const file of nodes) visit(file, []);
  return cycles;
}

describe("the source", () => {
  it("imports only what the table allows", () => {
    const wrong = imports
      .filter(({ to }) => to.startsWith("."))
      .filter((found) => {
        const [home, target] = [top(found.from), top(targetOf(found))];
        const allowed = MAY_IMPORT[home] ?? [];
        return home !== target && !allowed.includes("*") && !allowed.includes(target);
      })
      .map(
        (found) =>
          `${found.from} imports ${targetOf(found)}, but ${top(found.from)} may import only ${MAY_IMPORT[top(found.from)]?.join(", ") || "nothing"}.`,
      );
    expect(wrong).toEqual([]);
  });

  it("reaches a product only through its index.ts and its contract", () => {
    const wrong = imports
      .filter(({ from, to }) => to.startsWith(".") && !/^(main\.ts|cli\/|app\/compose\/)/.test(from))
      .filter((found) => top(found.from) !== top(targetOf(found)) && PRODUCTS.includes(top(targetOf(found))))
      // The app mounts their handlers.
      .filter((found) => !(top(found.from) === "app" && /^[\w-]+\/http\//.test(targetOf(found))))
      .filter((found) => !/^[\w-]+\/(index\.ts|contract\/)/.test(targetOf(found)))
      .map((found) => `${found.from} imports ${targetOf(found)}: use ${top(targetOf(found))}/index.ts.`);
    expect(wrong).toEqual([]);
  });

  it("reaches the engine only through its index.ts", () => {
    const ENGINE = "agent-server/engine/";
    const wrong = imports
      .filter((found) => found.to.startsWith(".") && targetOf(found).startsWith(ENGINE))
      .filter((found) => !found.from.startsWith(ENGINE) && targetOf(found) !== `${ENGINE}index.ts`)
      .map((found) => `${found.from} imports ${targetOf(found)}: use ${ENGINE}index.ts.`);
    expect(wrong).toEqual([]);
  });

  it("uses each library in its own place", () => {
    const wrong = imports
      .filter(({ to }) => !to.startsWith("."))
      .flatMap(({ from, to }) => {
        const name = to.startsWith("@") ? to.split("/").slice(0, 2).join("/") : to.split("/")[0];
        const home = PACKAGE_HOMES[to] ?? PACKAGE_HOMES[name as string];
        return home && !home.test(from) ? [`${from} imports ${to}, which belongs in ${home.source}.`] : [];
      });
    expect(wrong).toEqual([]);
  });

  it("has no cycle of files, types included", () => {
    expect(cyclesOf(files, imports, targetOf)).toEqual([]);
  });

  it("does not load the rules of the experiments in the serving thread", () => {
    const loaded = new Set<string>(["main.ts"]);
    for (const file of loaded)
      for (const found of imports)
        if (found.from === file && !found.types && found.to.startsWith(".")) loaded.add(targetOf(found));
    expect(loaded).toContain("experiments/worker/experiments-service.ts");
    expect(
      [...loaded].filter((file) => /^experiments\/(?!contract|http|storage\/migrations\.ts)/.test(file)).sort(),
    ).toEqual([
      // Comparisons are sent as CSV page by page.
      "experiments/serialization/csv.ts",
      "experiments/worker/experiments-service.ts",
      "experiments/worker/operation-workers.ts",
    ]);
  });

  it("reads the environment only in cli/, which passes it to config.ts, except for the environment of graphs", () => {
    const wrong = [...sources]
      .filter(([file, text]) => top(file) !== "cli" && /process\.env\b/.test(text))
      .filter(([file]) => file !== "agent-server/graph-hosts/inside/tracer.ts")
      .map(([file]) => file);
    expect(wrong).toEqual([]);
  });

  it.each([
    ["src", SRC],
    ["web/src", WEB],
  ])("has at most 20 entries in a folder of %s", (_, cwd) => {
    const folders = Map.groupBy(globSync("**/*", { cwd }), dirname);
    const large = [...folders]
      .filter(([, { length }]) => length > 20)
      .map(([folder, { length }]) => `${folder}: ${length}`);
    expect(large).toEqual([]);
  });

  it("has no file below 15 lines, except entry points", () => {
    const small = [...sources].filter(([, text]) => text.split("\n").length <= 15).map(([file]) => file);
    expect(small.filter((file) => !isEntryPoint(file))).toEqual([]);
  });

  it("has fewer than 120 files with one importer, besides entry points and files that are loaded later", () => {
    const ofWeb = webImports.map((found) => ({ ...found, from: join("../web/src", found.from) }));
    const importers = Map.groupBy(
      [...imports, ...ofWeb].filter(({ to }) => to.startsWith(".")),
      targetOf,
    );
    const single = [...importers]
      .filter(
        ([file, found]) =>
          sources.has(file) && new Set(found.map(({ from }) => from)).size === 1 && !isEntryPoint(file),
      )
      .filter(([, found]) => !found.some(({ isLater }) => isLater))
      .map(([file, [found]]) => `${file}, imported by ${found?.from}`);
    expect(single.length, single.join("\n")).toBeLessThan(120);
  });

  it("keeps its files small", () => {
    const large = [...sources]
      .filter(([, text]) => text.split("\n").length > 320)
      .map(([file, text]) => `${file}: ${text.split("\n").length} lines`);
    expect(large).toEqual([]);
  });
});

describe("the mutants", () => {
  it("each replace a text that occurs exactly once in their file", () => {
    const count = ({ file, replace: [guard] }: Mutant) =>
      readFileSync(join(SRC, "..", file), "utf8").split(guard).length - 1;
    expect(MUTANTS.filter((mutant) => count(mutant) !== 1).map(({ name }) => name)).toEqual([]);
  });
});

describe("the failpoints", () => {
  it.each(Object.entries(POINTS))("%s is before a statement that occurs once in its file", (_, { file, before }) => {
    const source = readFileSync(join(SRC, "..", file), "utf8");
    expect(source.split(before)).toHaveLength(2);
    expect(() => stripTypeScriptTypes(source.replace(before, `globalThis.failpoint(); ${before}`))).not.toThrow();
  });
});

describe("the web app", () => {
  const CONTRACT = /^..\/..\/src\/[\w-]+\/contract\//;
  const target = ({ from, to }: Import) => relative(WEB, resolve(WEB, dirname(from), to));

  it("imports the contracts and nothing else of the service", () => {
    const wrong = webImports
      .filter(({ to }) => to.startsWith("."))
      .filter((found) => target(found).startsWith("..") && !CONTRACT.test(target(found)))
      .map((found) => `web/src/${found.from} imports ${found.to}, but web may import only src/*/contract.`);
    expect(wrong).toEqual([]);
  });

  it("imports values of the contract only from files that import nothing, because schemas would include zod", () => {
    const wrong = webImports
      .filter((found) => !found.types && CONTRACT.test(target(found)))
      .filter((found) => imports.some(({ from, types }) => !types && from === target(found).slice("../../src/".length)))
      .map((found) => `web/src/${found.from} imports values of ${found.to}: use import type.`);
    expect(wrong).toEqual([]);
  });

  it("has no cycle of files, except for pages that are loaded later", () => {
    const now = webImports.filter(
      (found) => !found.types && !webSources.get(found.from)?.includes(`import("${found.to}")`),
    );
    expect(cyclesOf(webFiles, now, target)).toEqual([]);
  });

  it("keeps its files small", () => {
    const large = [...webSources].filter(([, text]) => text.split("\n").length > 320).map(([file]) => file);
    expect(large).toEqual([]);
  });
});
