import { fileURLToPath } from "node:url";
import { firstFound, formatOf, load, locate, type ModuleFormat, type PackageCopy } from "./packages.ts";

/** The graph's own copies of the LangGraph modules: host and graph exchange instances (messages, Send, Command, the checkpointer). */
export interface Library {
  messages: typeof import("@langchain/core/messages");
  /** `RunControl` exists since 1.4. Without it a run cannot be stopped between two steps. */
  langgraph: Pick<typeof import("@langchain/langgraph"), "Command" | "Send"> &
    Partial<Pick<typeof import("@langchain/langgraph"), "RunControl">>;
  checkpoint: typeof import("@langchain/langgraph-checkpoint");
  /** Undefined if the version has no such module. */
  schemas: Partial<typeof import("@langchain/langgraph/zod/schema")> | undefined;
}

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
  // LangGraph's own dependencies, which may be nested below it.
  const loadDependency = (specifier: string) =>
    load(locateFirst(specifier, [langgraph, import.meta.url], format), format);
  return {
    messages: (await load(messages, format)) as Library["messages"],
    langgraph: (await load(langgraph, format)) as Library["langgraph"],
    checkpoint: (await loadDependency("@langchain/langgraph-checkpoint")) as Library["checkpoint"],
    schemas: (await loadDependency("@langchain/langgraph/zod/schema").catch(() => undefined)) as Library["schemas"],
  };
}

const locateFirst = (specifier: string, origins: string[], format: ModuleFormat): string =>
  firstFound(origins.map((from) => () => locate(specifier, { from, format })));

/** One warning for each package of which a graph uses several copies. */
export function warningsOf(graph_id: string, copies: readonly PackageCopy[]): string[] {
  return [...Map.groupBy(copies, ({ name }) => name)]
    .filter(([, same]) => same.length > 1)
    .map(([name, same]) => {
      const locations = same.map(({ folder, format }) => `${fileURLToPath(folder)} (by ${format})`).join(" and ");
      return `The graph "${graph_id}" uses ${same.length} copies of ${name}: ${locations}. Checks such as instanceof fail for objects of another copy: install one version for all packages.`;
    });
}
