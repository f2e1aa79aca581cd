import { existsSync, readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { BaseCheckpointSaver, BaseStore, Pregel } from "@langchain/langgraph";
import type { HostSetup, ModuleExport, RunConfig } from "../../host.ts";
import { type Auth, asAuth } from "./auth.ts";
import { asEmbeddings, createProviderEmbeddings, type Embeddings } from "./embeddings.ts";
import { Libraries, type Library, warningsOf } from "./library.ts";
import { type Imported, importModule } from "./packages.ts";

// biome-ignore lint/suspicious/noExplicitAny: the type parameters of the graph are unknown
export type CompiledGraph = Pregel<any, any>;

/** The second argument of a graph factory. See docs/graphs.md. */
export interface FactoryRuntime {
  accessContext: "threads.create_run" | "threads.update" | "threads.read" | "assistants.read";
  executionRuntime: { context?: unknown } | null;
}

type Factory = (config: RunConfig, runtime: FactoryRuntime) => unknown;

export interface LoadedGraph {
  graph: CompiledGraph;
  library: Library;
}

export interface LoadedGraphs {
  /** Load errors by graph id. */
  failures: Record<string, string>;
  warnings: string[];
  /**
   * Returns the compiled graph. Each call calls the factory, if the export is one.
   *
   * @throws Error when the graph is unknown or failed to load
   */
  get(graph_id: string, config: RunConfig, runtime: FactoryRuntime): Promise<LoadedGraph>;
  /** @throws Error when the project has no embedding function, or it fails to load */
  embeddings(): Promise<Embeddings>;
  /**
   * Returns the export that `http.app` refers to.
   *
   * @throws Error when the project has no HTTP app, or it fails to load
   */
  app(): Promise<unknown>;
  /** @throws Error when the project has no authentication module, or it fails to load */
  auth(): Promise<Auth>;
}

/** The checkpointer and the store that the service provides to graphs. */
export interface Persistence {
  checkpointer: BaseCheckpointSaver<string>;
  store: BaseStore;
}

interface Exported {
  value: unknown;
  library: Library;
}

/** Loads all graphs of the project. A graph that fails to load does not affect the other graphs. */
export async function loadGraphs(
  setup: HostSetup,
  createPersistence: (library: Library) => Persistence,
): Promise<LoadedGraphs> {
  const failures: Record<string, string> = {};
  const warnings: string[] = [];
  const exported = new Map<string, Exported>();
  const persistences = new Map<Library, Persistence>();
  const libraries = new Libraries();
  const importProjectModule = importerFor(setup.project_dir);
  for (const graph of setup.graphs) {
    try {
      const { value, copies } = await importGraph(graph, importProjectModule);
      const library = await libraries.of(pathToFileURL(graph.file).href);
      if (!persistences.has(library)) persistences.set(library, createPersistence(library));
      exported.set(graph.graph_id, { value, library });
      warnings.push(...warningsOf(graph.graph_id, copies));
    } catch (error) {
      failures[graph.graph_id] = reasonOf(error, setup.project_dir);
    }
  }
  let embeddings: Promise<Embeddings> | undefined;
  let auth: Promise<Auth> | undefined;
  return {
    failures,
    warnings,
    embeddings() {
      const { embed, project_dir } = setup;
      if (!embed) throw new Error("langgraph.json has no store.index");
      embeddings ??=
        "package_name" in embed
          ? createProviderEmbeddings(embed, project_dir).catch((error) => {
              throw new Error(reasonOf(error, project_dir));
            })
          : importExport(embed, importProjectModule).then(({ value }) => asEmbeddings(value));
      return embeddings;
    },
    async app() {
      if (!setup.app) throw new Error("langgraph.json has no http.app");
      try {
        return (await importExport(setup.app, importProjectModule)).value;
      } catch (error) {
        throw new Error(reasonOf(error, setup.project_dir));
      }
    },
    auth() {
      if (!setup.auth) throw new Error("langgraph.json has no auth.path");
      auth ??= importExport(setup.auth, importProjectModule).then(({ value }) => asAuth(value));
      return auth;
    },
    async get(graph_id, config, runtime) {
      if (graph_id in failures) throw new Error(failures[graph_id]);
      const found = exported.get(graph_id);
      if (found === undefined) throw new Error(`Graph "${graph_id}" not found.`);
      const { value, library } = found;
      const graph =
        typeof value === "function"
          ? compile(await (value as Factory)(config, runtime), graph_id)
          : (value as CompiledGraph);
      // A copy, because another graph may contain the graph, where LangGraph reads the true or false with which it was compiled.
      const own = typeof graph.checkpointer === "boolean" ? graph.withConfig({}) : graph;
      // Replaces the checkpointer and the store with which the graph was compiled: the service stores state and items.
      Object.assign(own, persistences.get(library));
      return { graph: own, library };
    },
  };
}

type ImportFile = (file: string) => Promise<Imported>;

/**
 * Imports modules of the project. Node runs TypeScript with erasable types, saving 200 ms at startup and 20 MB compared with tsx. tsx is
 * loaded when a module needs path aliases, imports without an extension, or other TypeScript.
 */
export function importerFor(project_dir: string): ImportFile {
  const modules = new ProjectModules();
  let tsx: Promise<void> | undefined = usesPathAliases(project_dir) ? registerTsx(project_dir, modules) : undefined;
  let failed = false;
  return async (file) => {
    const hadTsx = tsx !== undefined;
    await tsx;
    const { href } = pathToFileURL(file);
    // Uses other URLs, because Node.js caches the failure under the original ones, of which later graphs may import some.
    if (failed && !modules.isLoaded(href)) return importModule(`${href}${RETRY_QUERY}`);
    try {
      return await modules.during(importModule(href));
    } catch (error) {
      // A retry is safe: Node could not parse or link the module, so none of its code has run.
      if (hadTsx || !isLinkError(error)) throw error;
      failed = true;
      tsx ??= registerTsx(project_dir, modules);
      await tsx;
      return importModule(`${href}${RETRY_QUERY}`);
    }
  };
}

const RETRY_QUERY = "?full";
const PROJECT_TYPESCRIPT = /^file:(?!.*\/node_modules\/)[^?]*\.[mc]?tsx?$/;

/** The modules of the project that Node.js has loaded by itself. Under another URL, their code would run a second time. */
class ProjectModules {
  readonly #loaded = new Set<string>();
  #resolved = new Set<string>();

  constructor() {
    registerHooks({
      resolve: (specifier, context, next) => {
        const found = next(specifier, context);
        if (PROJECT_TYPESCRIPT.test(found.url)) this.#resolved.add(found.url);
        return found;
      },
    });
  }

  isLoaded = (url: string): boolean => this.#loaded.has(url);

  /** Remembers the modules that are resolved during an import that succeeds. */
  async during<T>(imported: Promise<T>): Promise<T> {
    this.#resolved = new Set();
    const result = await imported;
    for (const url of this.#resolved) this.#loaded.add(url);
    return result;
  }
}

/** Returns the message of a load error without the parts that this module and Node add. */
function reasonOf(error: unknown, project_dir: string): string {
  if (!(error instanceof Error)) return String(error);
  const [, name] = /^Cannot find (?:module|package) '([^'./][^']*)'/.exec(error.message) ?? [];
  if (name !== undefined && !name.startsWith("node:")) {
    return `${name} is not installed in ${project_dir}; run "npm install ${name}" there`;
  }
  const [message = ""] = error.message.split("\nRequire stack:");
  return `${error.name}: ${message.replaceAll(/\?full=?/g, "")}`;
}

/** A .ts file with imports also causes a SyntaxError in a package of type commonjs. */
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

/** Whether the project's tsconfig.json may map paths, which Node does not support. */
function usesPathAliases(project_dir: string): boolean {
  const file = join(project_dir, "tsconfig.json");
  return existsSync(file) && /"(paths|baseUrl|extends)"\s*:/.test(readFileSync(file, "utf8"));
}

/** Registers tsx for both module systems: a .ts file of a package without "type": "module" is CommonJS. */
async function registerTsx(project_dir: string, modules: ProjectModules): Promise<void> {
  const [esm, cjs] = await Promise.all([import("tsx/esm/api"), import("tsx/cjs/api")]);
  const tsconfig = join(project_dir, "tsconfig.json");
  esm.register(existsSync(tsconfig) ? { tsconfig } : {});
  cjs.register();
  registerHooks({
    resolve(specifier, context, next) {
      const { parentURL, conditions } = context;
      const found = next(specifier, context);
      const isRetry = parentURL?.endsWith(RETRY_QUERY) && conditions?.includes("import");
      return isRetry && PROJECT_TYPESCRIPT.test(found.url) && !modules.isLoaded(found.url)
        ? { ...found, url: `${found.url}${RETRY_QUERY}` }
        : found;
    },
  });
}

async function importGraph(graph: ModuleExport, importFile: ImportFile) {
  const { value, copies } = await importExport(graph, importFile);
  return { value: typeof value === "function" && !isGraph(value) ? value : compile(value, graph.export_name), copies };
}

async function importExport({ file, export_name }: ModuleExport, importFile: ImportFile) {
  if (!existsSync(file)) throw new Error(`${file} does not exist`);
  const { exports, copies } = await importFile(file);
  const found = exports[export_name] ?? (exports.default as Record<string, unknown> | undefined)?.[export_name];
  if (found === undefined) {
    throw new Error(
      `${file} has no export "${export_name}"; it exports ${Object.keys(exports).join(", ") || "nothing"}`,
    );
  }
  return { value: await found, copies };
}

interface GraphLike {
  compile?: () => CompiledGraph;
  /** Prebuilt agents are objects that contain the compiled graph. */
  graph?: unknown;
  stream?: unknown;
}

const isGraph = (value: unknown): boolean =>
  typeof (value as GraphLike | null)?.compile === "function" ||
  typeof (value as GraphLike | null)?.stream === "function";

function compile(value: unknown, name: string): CompiledGraph {
  const candidate = value as GraphLike | null | undefined;
  if (typeof candidate?.compile === "function") return candidate.compile();
  if (candidate?.graph !== undefined && isGraph(candidate.graph)) return compile(candidate.graph, name);
  if (typeof candidate?.stream === "function") return candidate as unknown as CompiledGraph;
  throw new Error(
    `"${name}" is not a graph: export a StateGraph, a compiled graph, a promise of a compiled graph, or a function that returns a compiled graph`,
  );
}
