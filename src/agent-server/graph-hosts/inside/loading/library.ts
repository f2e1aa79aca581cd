import { fileURLToPath } from "node:url";
import { deferRunTrees, type Singletons } from "./deferred-run-trees.ts";
import { firstFound, formatOf, load, locate, type ModuleFormat, type PackageCopy } from "./packages.ts";

/** The graph's own copies of the LangGraph modules, because host and graph exchange instances (messages, Send, Command, checkpointer). */
export interface Library {
  messages: typeof import("@langchain/core/messages");
  /**
   * `RunControl` was added in version 1.4. Without it, a run cannot be stopped between two steps. Without `createGraphRunStream`, graphs
   * cannot stream the events of the thread protocol.
   */
  langgraph: Pick<typeof import("@langchain/langgraph"), "Command" | "Send"> &
    Partial<Pick<typeof import("@langchain/langgraph"), "RunControl" | "createGraphRunStream">>;
  checkpoint: typeof import("@langchain/langgraph-checkpoint");
  /** Undefined if the version has no such modules: runs are then not traced. */
  tracing: TracingLibrary | undefined;
  /** Undefined if the version has no such module. */
  schemas: Partial<typeof import("@langchain/langgraph/zod/schema")> | undefined;
}

/** The tracer classes of the copies of LangChain and LangSmith that the graph uses. */
export interface TracingLibrary {
  LangChainTracer: typeof import("@langchain/core/tracers/tracer_langchain").LangChainTracer;
  CallbackManager: typeof import("@langchain/core/callbacks/manager").CallbackManager;
  RunTree: LangSmithRunTree;
}

interface LangSmithRunTree {
  new (config: { name: string }): { project_name: string };
  getSharedClient(): TracingClient;
  /** @returns the run that the headers identify, as the parent of other runs */
  fromHeaders(headers: { "langsmith-trace": string }, config: object): RunTreeLike;
}

/** The type of the client that LangChain's tracer accepts. */
export type TracingClient = NonNullable<ConstructorParameters<TracingLibrary["LangChainTracer"]>[0]>["client"];
type RunTreeLike = Parameters<InstanceType<TracingLibrary["LangChainTracer"]>["updateFromRunTree"]>[0];

/** Loads the copies of LangGraph that each graph uses. Graphs with the same copies share them. */
export class Libraries {
  readonly #loading = new Map<string, Promise<Library>>();

  /** @param file URL of the graph's module, from which packages are resolved */
  of(file: string): Promise<Library> {
    const origins = [file, import.meta.url];
    const format = formatOf(locateFirst("@langchain/langgraph", origins, "import"));
    const langgraph = locateFirst("@langchain/langgraph", origins, format);
    const messages = locateFirst("@langchain/core/messages", [file, langgraph, import.meta.url], format);
    const key = `${langgraph} ${messages}`;
    const loading = this.#loading.get(key) ?? loadLibrary(langgraph, messages, format);
    this.#loading.set(key, loading);
    return loading;
  }
}

async function loadLibrary(langgraph: string, messages: string, format: ModuleFormat): Promise<Library> {
  // LangGraph's own dependencies may be installed in its node_modules folder.
  const loadDependency = (specifier: string) =>
    load(locateFirst(specifier, [langgraph, import.meta.url], format), format);
  const singletons = await load(locate("@langchain/core/singletons", { from: messages, format }), format);
  deferRunTrees(singletons as Singletons);
  return {
    messages: (await load(messages, format)) as Library["messages"],
    langgraph: (await load(langgraph, format)) as Library["langgraph"],
    checkpoint: (await loadDependency("@langchain/langgraph-checkpoint")) as Library["checkpoint"],
    schemas: (await loadDependency("@langchain/langgraph/zod/schema").catch(() => undefined)) as Library["schemas"],
    tracing: await loadTracing(messages, format).catch(() => undefined),
  };
}

async function loadTracing(messages: string, format: ModuleFormat): Promise<TracingLibrary> {
  const modules = ["@langchain/core/tracers/tracer_langchain", "@langchain/core/callbacks/manager", "langsmith"];
  const [tracer, manager, langsmith] = (await Promise.all(
    modules.map((specifier) => load(locate(specifier, { from: messages, format }), format)),
  )) as [TracingLibrary, TracingLibrary, TracingLibrary];
  return {
    LangChainTracer: tracer.LangChainTracer,
    CallbackManager: manager.CallbackManager,
    RunTree: langsmith.RunTree,
  };
}

const locateFirst = (specifier: string, origins: string[], format: ModuleFormat): string =>
  firstFound(origins.map((from) => () => locate(specifier, { from, format })));

/** Returns one warning for each package of which a graph uses several copies. */
export function warningsOf(graph_id: string, copies: readonly PackageCopy[]): string[] {
  return [...Map.groupBy(copies, ({ name }) => name)]
    .filter(([, same]) => same.length > 1)
    .map(([name, same]) => {
      const locations = same
        .map(({ folder, format }) => `${fileURLToPath(folder)} (loaded with ${format})`)
        .join(" and ");
      return `The graph "${graph_id}" loads ${same.length} copies of ${name}: ${locations}. Checks such as instanceof fail across copies. Make sure that all packages use the same installed copy of ${name} and load it in the same module format.`;
    });
}
