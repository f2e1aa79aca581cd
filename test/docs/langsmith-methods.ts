import { type MethodTable, readTables } from "../compat/methods/outcomes.ts";
import { cell, regenerate, statusOf } from "./methods-page.ts";

/**
 * The page about the methods of the official clients. `node test/docs/langsmith-methods.ts` calls all methods on a service and writes
 * the table and the page.
 */

export const METHODS_PAGE = "docs/compatibility-langsmith.md";

const INTRODUCTION = `# LangSmith clients

This page lists every public method of the official clients, and what it does with Threadmill. The tests call each method with real
arguments; this page is generated from the result (\`node test/docs/langsmith-methods.ts\`). Set the endpoint and the key as in
[tracing.md](tracing.md): the clients are used unmodified.

A method that is not offered responds with the status 404 and the sentence in the table. The methods of the resource \`sandboxes\` are one
row.
`;

function rowOf([name, outcome]: [string, string]): string {
  const { status, note } = statusOf(outcome);
  return `| \`${name}\` | ${status} | ${cell(note)} |`;
}

function sectionOf({ client, methods }: MethodTable): string {
  const outcomes = Object.values(methods);
  const count = (kind: string) => outcomes.filter((outcome) => outcome.startsWith(kind)).length;
  const rows = Object.entries(methods).sort(([a], [b]) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1));
  return `## ${client}

${outcomes.length} methods: ${count("works")} work, ${count("limit")} work with limitations, ${count("not offered") + count("refused")} are not offered.

| Method | Status | Note |
|---|---|---|
${rows.map(rowOf).join("\n")}
`;
}

/** The page as it must be. */
export const methodsPage = (): string =>
  [INTRODUCTION, ...Object.values(readTables("langsmith")).map(sectionOf)].join("\n");

if (import.meta.main) {
  // The clients are loaded for the calls only, not for the page.
  const { callJavaScript } = await import("../compat/langsmith-methods/javascript.ts");
  const { callPython } = await import("../compat/methods/python.ts");
  await regenerate({
    table: "langsmith",
    page: METHODS_PAGE,
    text: methodsPage,
    config: "examples/langgraph.json",
    call: async (url) => ({
      javascript: await callJavaScript(url),
      ...(await callPython("langsmith_methods.py", url)).results,
    }),
  });
}
