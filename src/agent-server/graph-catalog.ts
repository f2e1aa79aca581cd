import { ApiError } from "../platform/errors.ts";
import type { JsonObject } from "../platform/lib/json/json.ts";
import type { Language } from "./graph-hosts/checkpoint-requests.ts";
import type { GraphToLoad } from "./graph-hosts/host.ts";

export interface CatalogGraph extends GraphToLoad {
  description: string | null;
}

export interface CatalogContent {
  graphs: readonly CatalogGraph[];
  /** Environment variables of the graph hosts. */
  graph_env: Readonly<Record<string, string>>;
  /** Config and context of default assistants, by graph. */
  default_assistants: Readonly<Record<string, { config: JsonObject; context: JsonObject }>>;
}

/** The deployed graphs and their load failures. `dev` replaces both when files change. */
export class GraphCatalog {
  content: CatalogContent;
  failures: Readonly<Record<string, string>> = {};

  constructor(content: CatalogContent) {
    this.content = content;
  }

  get graphs(): readonly CatalogGraph[] {
    return this.content.graphs;
  }

  has(graph_id: string): boolean {
    return this.graphs.some((graph) => graph.graph_id === graph_id);
  }

  /** Undefined for a graph that the project does not have. */
  languageOf(graph_id: string): Language | undefined {
    return this.graphs.find((graph) => graph.graph_id === graph_id)?.language;
  }

  /** @throws ApiError graph_not_found; graph_unavailable with the load error */
  require(graph_id: string): CatalogGraph {
    const found = this.graphs.find((graph) => graph.graph_id === graph_id);
    if (!found) {
      const graphs = this.graphs.map((graph) => graph.graph_id).join(", ");
      throw new ApiError("graph_not_found", { graph_id, graphs });
    }
    const reason = this.failures[graph_id];
    if (reason !== undefined) throw new ApiError("graph_unavailable", { graph_id, reason });
    return found;
  }
}

const LANGUAGE_NAMES: Record<Language, string> = { js: "JavaScript", python: "Python" };

/** The error of a run whose thread has the state of a graph in the other language. */
export const languageMismatch = (written: Language, graph_id: string, language: Language): ApiError =>
  new ApiError("language_mismatch", {
    written: LANGUAGE_NAMES[written],
    graph_id,
    language: LANGUAGE_NAMES[language],
  });
