import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import {
  type CallResults,
  type MethodTable,
  outcomesOf,
  readTables,
  TABLE_FILE,
} from "../compat/langsmith-methods/outcomes.ts";
import { freePort, startProcess } from "../support/process.ts";

/**
 * The page about the methods of the official clients. `node test/docs/langsmith-methods.ts` calls all methods on a service and writes
 * the table and the page.
 */

const ROOT = resolve(import.meta.dirname, "../..");
export const METHODS_PAGE = "docs/compatibility-langsmith.md";

const INTRODUCTION = `# LangSmith clients

This page lists every public method of the official clients, and what it does with Threadmill. The tests call each method with real
arguments; this page is generated from the result (\`node test/docs/langsmith-methods.ts\`). Set the endpoint and the key as in
[tracing.md](tracing.md): the clients are used unmodified.

A method that is not offered responds with the status 404 and the sentence in the table. The methods of the resource \`sandboxes\` are one
row.
`;

const cell = (text: string) => text.replaceAll("|", "\\\\|");

function rowOf([name, outcome]: [string, string]): string {
  const [, kind, sentence = ""] = /^(works|limit|not offered|refused)(?:: (.*))?$/s.exec(outcome) ?? [];
  const status = kind === "limit" ? "works, with a limit" : kind;
  return `| \`${name}\` | ${status} | ${cell(sentence)} |`;
}

function sectionOf({ client, methods }: MethodTable): string {
  const outcomes = Object.values(methods);
  const count = (kind: string) => outcomes.filter((outcome) => outcome.startsWith(kind)).length;
  const rows = Object.entries(methods).sort(([a], [b]) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1));
  return `## ${client}

${outcomes.length} methods: ${count("works")} work, ${count("limit")} work with a limit, ${count("not offered") + count("refused")} are not offered.

| Method | Status | Note |
|---|---|---|
${rows.map(rowOf).join("\n")}
`;
}

/** The page as it must be. */
export const methodsPage = (): string => [INTRODUCTION, ...Object.values(readTables()).map(sectionOf)].join("\n");

async function regenerate(): Promise<void> {
  // The clients are loaded for the calls only, not for the page.
  const { callJavaScript } = await import("../compat/langsmith-methods/javascript.ts");
  const { callPython } = await import("../compat/langsmith-methods/python.ts");
  const data = mkdtempSync(join(tmpdir(), "threadmill-methods-"));
  const { url, child, ended } = await startProcess({
    config: "examples/langgraph.json",
    data,
    port: await freePort(),
    command: "dev",
  });
  try {
    const tables = readTables();
    const results: Record<string, CallResults> = {
      javascript: await callJavaScript(url),
      ...(await callPython(url)).results,
    };
    const changed = Object.entries(tables).map(([name, table]) => [
      name,
      { ...table, methods: outcomesOf(results[name] ?? {}, table) },
    ]);
    writeFileSync(TABLE_FILE, `${JSON.stringify(Object.fromEntries(changed), null, 2)}\n`);
    writeFileSync(join(ROOT, METHODS_PAGE), methodsPage());
    const failures = readFileSync(TABLE_FILE, "utf8")
      .split("\n")
      .filter((line) => line.includes('": "fails: '));
    if (failures.length > 0) throw new Error(`These calls failed:\n${failures.join("\n")}`);
  } finally {
    child.kill();
    await ended;
    rmSync(data, { recursive: true });
  }
}

if (import.meta.main) await regenerate();
