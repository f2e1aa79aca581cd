import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createProject, type TestProject } from "../../support/project.ts";

const GRAPHS = resolve(import.meta.dirname, "../../graphs/compat");

/** Writes what the bundler of UI components writes. test/web/ui-components.test.ts has the real one. */
const BUNDLER = `
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
const folder = join(process.argv[process.argv.indexOf("--output") + 1], "public/agent");
mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, "entrypoint.js"), "");
`;

/** The graphs of test/graphs/compat in a project that also has UI components. */
export function methodsProject(): TestProject {
  const { graphs, ...others } = JSON.parse(readFileSync(join(GRAPHS, "langgraph.json"), "utf8"));
  const paths = Object.entries(graphs).map(([name, path]) => [name, resolve(GRAPHS, path as string)]);
  const project = createProject({});
  // In a folder of its own, because the node_modules of the project are those of the repository.
  const folder = join(project.folder, "project");
  const bundler = join(folder, "node_modules/@langchain/langgraph-ui");
  mkdirSync(bundler, { recursive: true });
  writeFileSync(join(bundler, "package.json"), JSON.stringify({ main: "cli.mjs" }));
  writeFileSync(join(bundler, "cli.mjs"), BUNDLER);
  const config = join(folder, "langgraph.json");
  writeFileSync(join(folder, "ui.tsx"), "export default {};\n");
  writeFileSync(
    config,
    JSON.stringify({ graphs: Object.fromEntries(paths), ui: { agent: "./ui.tsx" }, ...others }, null, 2),
  );
  return { ...project, config };
}
