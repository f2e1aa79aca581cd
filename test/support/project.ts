import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MODULES = join(import.meta.dirname, "../../node_modules");

/** A project in a folder of its own, for tests that change or break its files. */
export interface TestProject {
  folder: string;
  config: string;
  data: string;
  write(file: string, text: string): void;
  drop(): void;
}

/** @param node_modules the folder with its packages; default: that of the repository */
export function createProject(files: Record<string, string>, node_modules = MODULES): TestProject {
  const folder = mkdtempSync(join(tmpdir(), "threadmill-project-"));
  symlinkSync(node_modules, join(folder, "node_modules"), "junction");
  const project: TestProject = {
    folder,
    config: join(folder, "langgraph.json"),
    data: join(folder, ".threadmill"),
    write: (file, text) => writeFileSync(join(folder, file), text),
    drop: () => rmSync(folder, { recursive: true, force: true }),
  };
  for (const [file, text] of Object.entries(files)) project.write(file, text);
  return project;
}

/** The source of a module that exports a graph of one node, which waits for `ms` and then answers `text`. */
export const oneNodeGraph = (text: string, ms = 0): string => `
import { Annotation, StateGraph } from "@langchain/langgraph";
const State = Annotation.Root({ answer: Annotation });
export const graph = new StateGraph(State)
  .addNode("node", async (_, config) => {
    config.writer?.({ begun: true });
    await new Promise((resolve) => setTimeout(resolve, ${ms}));
    return { answer: ${JSON.stringify(text)} };
  })
  .addEdge("__start__", "node").addEdge("node", "__end__").compile();
`;
