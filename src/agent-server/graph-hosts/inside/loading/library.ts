import { fileURLToPath } from "node:url";
import { formatOf, isNotFound, load, locate, type ModuleFormat, type PackageCopy } from "./packages.ts";

/**
 * The modules of LangGraph that a host works with. They are the graph's own copies: instances that cross between the host and
 * the graph (messages, Send, Command, the checkpointer) then have classes that both know.
 */
export interface Library {
  messages: typeof import("@langchain/core/messages");
  /** `RunControl` came with 1.4: without it a run cannot be asked to stop between two steps. */
  langgraph: Pick<typeof import("@langchain/langgraph"), "Command" | "Send"> &
    Partial<Pick<typeof import("@langchain/langgraph"), "RunControl">>;
  checkpoint: typeof import("@langchain/langgraph-checkpoint");
  /** Undefined where the version has none. */
  schemas: Partial<typeof import("@langchain/langgraph/zod/schema")> | undefined;
}

/** Loads for each graph the copies of LangGraph that it is built with; graphs with the same copies share them. */
export class Libraries {
  readonly #loading = new Map<string, Promise<Library>>();

  /** @param file URL of the graph's module, from which packages are resolved */
  of(file: string): Promise<Library> {
    const places = [file, import.meta.url];
    const format = formatOf(locateFirst("@langchain/langgraph", places, "import"));
    const langgraph = locateFirst("@langchain/langgraph", places, format);
    const messages = locateFirst("@langchain/core/messages", [file, langgraph, import.meta.url], format);
    const key = `${langgraph} ${messages}`;
    const loading = this.#loading.get(key) ?? loadLibrary(langgraph, messages, format);
    this.#loading.set(key, loading);
    return loading;
  }
}

async function loadLibrary(langgraph: string, messages: string, format: ModuleFormat): Promise<Library> {
  // What belongs to LangGraph is the copy that LangGraph uses, which may lie below it.
  const inside = (specifier: string) => load(locateFirst(specifier, [langgraph, import.meta.url], format), format);
  return {
    messages: (await load(messages, format)) as Library["messages"],
    langgraph: (await load(langgraph, format)) as Library["langgraph"],
    checkpoint: (await inside("@langchain/langgraph-checkpoint")) as Library["checkpoint"],
    schemas: (await inside("@langchain/langgraph/zod/schema").catch(() => undefined)) as Library["schemas"],
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

/** One sentence for each package of which a graph uses several copies: instances of one are strangers to the other. */
export function warningsOf(graph_id: string, copies: readonly PackageCopy[]): string[] {
  return [...Map.groupBy(copies, ({ name }) => name)]
    .filter(([, same]) => same.length > 1)
    .map(([name, same]) => {
      const places = same.map(({ folder, format }) => `${fileURLToPath(folder)} (by ${format})`).join(" and ");
      return `The graph "${graph_id}" uses ${same.length} copies of ${name}: ${places}. Checks such as instanceof fail between them: install one version for all packages.`;
    });
}
