import { fileURLToPath } from "node:url";
import { formatOf, isNotFound, load, locate, type ModuleFormat, type PackageCopy } from "./packages.ts";

/**
 * The modules of LangGraph that a host uses for a graph. They are the graph's own copies, so that both have the same
 * classes for the instances that they exchange (messages, Send, Command, the checkpointer).
 */
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
  // The dependencies of LangGraph are the copies that LangGraph uses, which may be nested below it.
  const loadDependency = (specifier: string) =>
    load(locateFirst(specifier, [langgraph, import.meta.url], format), format);
  return {
    messages: (await load(messages, format)) as Library["messages"],
    langgraph: (await load(langgraph, format)) as Library["langgraph"],
    checkpoint: (await loadDependency("@langchain/langgraph-checkpoint")) as Library["checkpoint"],
    schemas: (await loadDependency("@langchain/langgraph/zod/schema").catch(() => undefined)) as Library["schemas"],
  };
}

function locateFirst(specifier: string, [from, ...others]: string[], format: ModuleFormat): string {
  try {
    return locate(specifier, { from: from as string, format });
  } catch (error) {
    if (others.length === 0 || !isNotFound(error)) throw error;
    return locateFirst(specifier, others, format);
  }
}

/** One warning for each package of which a graph uses several copies, whose classes are different. */
export function warningsOf(graph_id: string, copies: readonly PackageCopy[]): string[] {
  return [...Map.groupBy(copies, ({ name }) => name)]
    .filter(([, same]) => same.length > 1)
    .map(([name, same]) => {
      const locations = same.map(({ folder, format }) => `${fileURLToPath(folder)} (by ${format})`).join(" and ");
      return `The graph "${graph_id}" uses ${same.length} copies of ${name}: ${locations}. Checks such as instanceof fail between them: install one version for all packages.`;
    });
}
