import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { BaseCheckpointSaver, Pregel } from "@langchain/langgraph";
import type { GraphToLoad, HostSetup, RunConfig } from "../../host.ts";
import { Libraries, type Library, warningsOf } from "./library.ts";
import { type Imported, importModule } from "./packages.ts";

/** Any compiled graph. Its nodes and channels are the user's business. */
// biome-ignore lint/suspicious/noExplicitAny: the type parameters of a graph whose source we do not know
export type CompiledGraph = Pregel<any, any>;

/** What a factory learns about its use; the names are those of the compatible servers. */
export interface FactoryRuntime {
  accessContext: "threads.create_run" | "threads.update" | "threads.read" | "assistants.read";
  executionRuntime: { context?: unknown } | null;
}

type Factory = (config: RunConfig, runtime: FactoryRuntime) => unknown;

/** A graph in use, and the modules of LangGraph that it is built with. */
export interface LoadedGraph {
  graph: CompiledGraph;
  library: Library;
}

export interface LoadedGraphs {
  /** Reason by graph id, for the graphs that could not be loaded. */
  failures: Record<string, string>;
  /** Sentences about what will go wrong in graphs that are loaded. */
  warnings: string[];
  /**
   * The compiled graph; a factory is called anew each time.
   *
   * @throws Error when the graph is unknown or failed to load
   */
  get(graph_id: string, config: RunConfig, runtime: FactoryRuntime): Promise<LoadedGraph>;
}

/** Makes the checkpointer of graphs that are built with a library. */
export type CreateCheckpointer = (library: Library) => BaseCheckpointSaver<string>;

interface Exported {
  value: unknown;
  library: Library;
}

/** Loads all graphs of the project, each on its own: one that fails does not keep the others away. */
export async function loadGraphs(setup: HostSetup, createCheckpointer: CreateCheckpointer): Promise<LoadedGraphs> {
  const failures: Record<string, string> = {};
  const warnings: string[] = [];
  const exported = new Map<string, Exported>();
  const checkpointers = new Map<Library, BaseCheckpointSaver<string>>();
  const libraries = new Libraries();
  const importProjectModule = importerFor(setup.project_dir);
  for (const graph of setup.graphs) {
    try {
      const { value, copies } = await importGraph(graph, importProjectModule);
      const library = await libraries.of(pathToFileURL(graph.file).href);
      if (!checkpointers.has(library)) checkpointers.set(library, createCheckpointer(library));
      exported.set(graph.graph_id, { value, library });
      warnings.push(...warningsOf(graph.graph_id, copies));
    } catch (error) {
      failures[graph.graph_id] = reasonOf(error, setup.project_dir);
    }
  }
  return {
    failures,
    warnings,
    async get(graph_id, config, runtime) {
      if (graph_id in failures) throw new Error(failures[graph_id]);
      const found = exported.get(graph_id);
      if (found === undefined) throw new Error(`There is no graph "${graph_id}".`);
      const { value, library } = found;
      const graph =
        typeof value === "function"
          ? compile(await (value as Factory)(config, runtime), graph_id)
          : (value as CompiledGraph);
      // Whatever checkpointer the graph was compiled with: its state belongs to the service.
      graph.checkpointer = checkpointers.get(library) as never;
      return { graph, library };
    },
  };
}

type ImportFile = (file: string) => Promise<Imported>;

/**
 * How modules of the project are imported. Node itself runs TypeScript whose types can simply be erased, and starts
 * 200 ms sooner and 20 MB smaller than with tsx. tsx understands all of TypeScript, path aliases and imports without
 * extension, and is loaded once a module needs it.
 */
export function importerFor(project_dir: string): ImportFile {
  let full: Promise<void> | undefined = needsAliases(project_dir) ? supportTypeScript(project_dir) : undefined;
  const failed = new Set<string>();
  return async (file) => {
    const hadFull = full !== undefined;
    await full;
    const { href } = pathToFileURL(file);
    // Under another name: Node remembers that the first one failed.
    if (failed.has(href)) return importModule(`${href}${AGAIN}`);
    try {
      return await importModule(href);
    } catch (error) {
      // Node could not read or link the module, so nothing of it has run yet.
      if (hadFull || !isLinkError(error)) throw error;
      failed.add(href);
      full ??= supportTypeScript(project_dir);
      await full;
      return importModule(`${href}${AGAIN}`);
    }
  };
}

const AGAIN = "?full";

/** Why a graph could not be loaded, for its author: without what this file and Node add to names. */
function reasonOf(error: unknown, project_dir: string): string {
  if (!(error instanceof Error)) return String(error);
  const [, name] = /^Cannot find (?:module|package) '([^'./][^']*)'/.exec(error.message) ?? [];
  if (name !== undefined && !name.startsWith("node:")) {
    return `${name} is not installed in ${project_dir}; run "npm install ${name}" there`;
  }
  const [message = ""] = error.message.split("\nRequire stack:");
  return `${error.name}: ${message.replaceAll(/\?full=?/g, "")}`;
}

/** A SyntaxError is also what a .ts file with imports is in a package whose type is commonjs. */
const isLinkError = (error: unknown): boolean =>
  error instanceof SyntaxError || LINK_ERRORS.has((error as { code?: string } | null)?.code ?? "");

const LINK_ERRORS = new Set([
  "ERR_MODULE_NOT_FOUND",
  "ERR_UNKNOWN_FILE_EXTENSION",
  "ERR_UNSUPPORTED_DIR_IMPORT",
  "ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING",
  "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX",
  "ERR_INVALID_TYPESCRIPT_SYNTAX",
  "ERR_PACKAGE_PATH_NOT_EXPORTED",
]);

/** Whether the project's tsconfig.json maps paths, which Node does not know of. */
function needsAliases(project_dir: string): boolean {
  const file = join(project_dir, "tsconfig.json");
  return existsSync(file) && /"(paths|baseUrl|extends)"\s*:/.test(readFileSync(file, "utf8"));
}

/** For both module systems: a .ts file of a package without "type": "module" is CommonJS. */
async function supportTypeScript(project_dir: string): Promise<void> {
  const [esm, cjs] = await Promise.all([import("tsx/esm/api"), import("tsx/cjs/api")]);
  const tsconfig = join(project_dir, "tsconfig.json");
  esm.register(existsSync(tsconfig) ? { tsconfig } : {});
  cjs.register();
}

async function importGraph({ file, export_name }: GraphToLoad, importFile: ImportFile) {
  if (file.endsWith(".py")) {
    throw new Error(
      `${file} is Python, and this version runs JavaScript and TypeScript: name a .ts or .js module, or serve the Python graph elsewhere and call it from one by RemoteGraph`,
    );
  }
  if (!existsSync(file)) throw new Error(`${file} does not exist`);
  const { exports, copies } = await importFile(file);
  const found = exports[export_name] ?? (exports.default as Record<string, unknown> | undefined)?.[export_name];
  if (found === undefined) {
    throw new Error(
      `${file} has no export "${export_name}"; it exports ${Object.keys(exports).join(", ") || "nothing"}`,
    );
  }
  const value = await found;
  return { value: typeof value === "function" && !isGraph(value) ? value : compile(value, export_name), copies };
}

interface GraphLike {
  compile?: () => CompiledGraph;
  /** Prebuilt agents wrap their graph. */
  graph?: unknown;
  stream?: unknown;
}

const isGraph = (value: unknown): boolean =>
  typeof (value as GraphLike | null)?.compile === "function" ||
  typeof (value as GraphLike | null)?.stream === "function";

/** A compiled graph from any form in which people export one. */
function compile(value: unknown, name: string): CompiledGraph {
  const candidate = value as GraphLike | null | undefined;
  if (typeof candidate?.compile === "function") return candidate.compile();
  if (candidate?.graph !== undefined && isGraph(candidate.graph)) return compile(candidate.graph, name);
  if (typeof candidate?.stream === "function") return candidate as unknown as CompiledGraph;
  throw new Error(
    `"${name}" is not a graph: export a StateGraph, a compiled graph, a promise of one, or a function that returns one`,
  );
}
