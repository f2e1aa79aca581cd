import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { RunStatus, StreamMode, ThreadStatus } from "../../src/agent-server/contract/records.ts";
import { ERRORS } from "../../src/platform/errors.ts";
import { RUN_TRANSITIONS, THREAD_TRANSITIONS, type Transition } from "../support/run-states.ts";
import { openTestStorage } from "../support/storage.ts";
import { COMPATIBILITY_PAGE, compatibilityPage } from "./agent-server-methods.ts";
import { METHODS_PAGE, methodsPage } from "./langsmith-methods.ts";
import { TABLES, withTables } from "./settings-tables.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const read = (file: string) => readFileSync(join(ROOT, file), "utf8");

/** The cells of all table rows of a page, or of a part of it. */
const rowsOf = (text: string): string[][] =>
  [...text.matchAll(/^\| (.*)\|$/gm)].map(([, row]) => (row as string).split("|").map((cell) => cell.trim()));

const bare = (cell: string | undefined) => /^`(.*)`$/.exec(cell ?? "")?.[1];

/** The part of a page under a heading, to the next heading of the same level or above. */
function section(text: string, heading: string): string {
  const [, part] = text.split(`${heading}\n`);
  if (part === undefined) throw new Error(`There is no heading "${heading}".`);
  const level = heading.indexOf(" ");
  return part.split(new RegExp(`^#{1,${level}} `, "m"))[0] as string;
}

describe("the Grafana dashboard", () => {
  it("shows each metric of the service, and only these", () => {
    const documented = rowsOf(section(read("docs/configuration.md"), "### Monitoring")).flatMap(
      ([name]) => bare(name)?.match(/^threadmill_\w+$/) ?? [],
    );
    const queries = [...read("deploy/grafana/dashboard.json").matchAll(/"expr": "(.*)"/g)].map(
      ([, query]) => query as string,
    );
    const used = queries.flatMap((query) => query.match(/\bthreadmill_\w+/g) ?? []);
    const names = used.map((name) => name.replace(/_(bucket|count|sum)$/, ""));
    expect([...new Set(names)].sort()).toEqual(documented.sort());
  });
});

const namesIn = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name as string);

describe("docs/run-states.md", () => {
  const arrows = (transitions: readonly Transition<string>[]) =>
    transitions.map(({ from, to, because }) => `${from ?? "[*]"} --> ${to ?? "[*]"}: ${because}`);

  it.each([
    ["## Runs", RUN_TRANSITIONS],
    ["## Threads", THREAD_TRANSITIONS],
  ])("shows under %j the transitions of the program", (heading, transitions) => {
    const lines = section(read("docs/run-states.md"), heading).split("\n");
    const drawn = lines.map((line) => line.trim()).filter((line) => line.includes("-->"));
    expect(drawn).toEqual(arrows(transitions));
  });
});

describe("docs/errors.md", () => {
  it("has exactly the rows of ERRORS", () => {
    const table = rowsOf(read("docs/errors.md")).filter((cells) => /^\d{3}$/.test(cells[1] ?? ""));
    const documented = table.map(([code, status, sentence]) => [bare(code), Number(status), bare(sentence)]);
    expect(documented).toEqual(Object.entries(ERRORS).map(([code, row]) => [code, ...row]));
    for (const cells of table)
      expect(
        cells.filter((cell) => cell !== ""),
        cells[0],
      ).toHaveLength(5);
  });
});

describe("ARCHITECTURE.md", () => {
  const page = read("ARCHITECTURE.md");

  it("has at most 250 lines", () => {
    expect(page.split("\n").length).toBeLessThan(250);
  });

  it("has the import table of the architecture test", () => {
    const [, literal = ""] =
      /const MAY_IMPORT: Record<string, string\[\]> = \{(.*?)\n\};/s.exec(read("test/architecture.test.ts")) ?? [];
    const enforced = [...literal.matchAll(/"?([\w.-]+)"?:\s*\[([^\]]*)\]/g)].map(([, part, list]) => [
      part,
      [...(list as string).matchAll(/"([^"]+)"/g)].map(([, name]) => name),
    ]);
    const documented = rowsOf(section(page, "### Import rules"))
      .slice(1)
      .map(([part, list = ""]) => [bare(part), list === "everything" ? ["*"] : namesIn(list)]);
    expect(enforced.length).toBeGreaterThan(5);
    expect(documented).toEqual(enforced);
  });
});

describe("docs/internals/database.md", () => {
  const page = read("docs/internals/database.md");

  it("names every table with exactly its columns", async () => {
    const storage = await openTestStorage("sqlite");
    const { read: tx } = storage.database;
    const select = (query: string) =>
      tx.all(sql.raw<{ name: string }>(query).$castTo<{ name: string }>().compile(tx.k));
    const tables: Record<string, string[]> = {};
    for (const { name } of await select("select name from sqlite_master where type = 'table'")) {
      if (name.startsWith("sqlite_")) continue;
      tables[name] = (await select(`select name from pragma_table_info('${name}')`))
        .map((column) => column.name)
        .sort();
    }
    await storage.close();
    const documented = [...page.matchAll(/^### `(\w+)`$/gm)].map(([heading, name]) => {
      const [, ...rows] = rowsOf(section(page, heading));
      return [name, rows.map(([column]) => bare(column)).sort()];
    });
    expect(Object.keys(tables).length).toBeGreaterThan(5);
    expect(Object.fromEntries(documented)).toEqual(tables);
  });
});

describe("the settings", () => {
  it.each(Object.keys(TABLES))(
    "in %s are those of src/config (write them with: node test/docs/settings-tables.ts)",
    (page) => {
      for (const marker of Object.keys(TABLES[page] ?? {}))
        expect(read(page)).toContain(`<!-- settings: ${marker} -->`);
      expect(read(page)).toBe(withTables(page));
    },
  );

  it("in the README are about a dozen", () => {
    const rows = rowsOf(section(read("README.md"), "## Configuration")).filter(([variable]) =>
      bare(variable?.split(",")[0]),
    );
    expect(rows.length).toBeGreaterThan(9);
    expect(rows.length).toBeLessThan(15);
  });
});

describe("the methods of the official clients", () => {
  it("in docs/compatibility-langsmith.md are those of the table (write them with: node test/docs/langsmith-methods.ts)", () => {
    expect(read(METHODS_PAGE)).toBe(methodsPage());
  });

  it("in docs/compatibility.md are those of the table (write them with: node test/docs/agent-server-methods.ts)", () => {
    expect(read(COMPATIBILITY_PAGE)).toBe(compatibilityPage());
  });
});

describe("the states and modes", () => {
  const firstCells = (file: string) => rowsOf(read(file)).map(([cell]) => bare(cell));

  it.each(RunStatus.options)("of runs are explained: %s", (status) => {
    expect(firstCells("docs/run-states.md")).toContain(status);
  });

  it.each(ThreadStatus.options)("of threads are explained: %s", (status) => {
    expect(rowsOf(section(read("docs/run-states.md"), "## Threads")).map(([cell]) => bare(cell))).toContain(status);
  });

  it.each(StreamMode.options)("of streams are explained: %s", (mode) => {
    expect(firstCells("docs/streaming.md")).toContain(mode);
  });
});

describe("the links", () => {
  const pages = globSync(["*.md", "docs/**/*.md", "{examples,web}/README.md"], {
    cwd: ROOT,
    exclude: ["docs/.*/**"],
  }).sort();

  it.each(pages)("of %s point to something that exists", (page) => {
    const text = read(page).replaceAll(/```.*?```/gs, "");
    const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link as string);
    const broken = links.filter((link) => !/^[a-z]+:/.test(link)).filter((link) => !exists(page, link));
    expect(broken).toEqual([]);
  });
});

describe("the paths", () => {
  const pages = globSync(["*.md", "docs/**/*.md", "web/README.md"], {
    cwd: ROOT,
    exclude: ["docs/.*/**", "CHANGELOG.md"],
  });
  const bases = [
    "",
    "src",
    "src/agent-server",
    "src/experiments",
    "src/control-plane",
    "src/access",
    "src/platform/database",
    "src/agent-server/graph-hosts",
    "web",
    "web/src",
  ];

  it.each(pages.sort())("of sources in %s exist", (page) => {
    const paths = [...read(page).matchAll(/`([a-z][\w-]*\/[\w./-]+\.tsx?)`/g)].map(([, path]) => path as string);
    expect(paths.filter((path) => !bases.some((base) => existsSync(join(ROOT, base, path))))).toEqual([]);
  });
});

/** Whether a relative link leads to a file, and its anchor to a heading of that file. */
function exists(page: string, link: string): boolean {
  const [path = "", anchor] = link.split("#");
  const file = path === "" ? join(ROOT, page) : resolve(ROOT, dirname(page), path);
  if (!existsSync(file)) return false;
  if (anchor === undefined) return true;
  const headings = [...readFileSync(file, "utf8").matchAll(/^#{1,6} (.*)$/gm)].map(([, heading]) => heading as string);
  return headings.some((heading) => slug(heading) === anchor);
}

const slug = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
