import { ApiError } from "../errors.ts";
import type { GraphToLoad } from "../graphs/host.ts";

export interface CatalogGraph extends GraphToLoad {
  description: string | null;
}

/** The graphs that are deployed now, and which of them could not be loaded. `dev` replaces both when files change. */
export class GraphCatalog {
  graphs: readonly CatalogGraph[];
  /** Environment variables of the graphs. */
  env: Readonly<Record<string, string>>;
  failures: Readonly<Record<string, string>> = {};

  constructor(graphs: readonly CatalogGraph[], env: Readonly<Record<string, string>>) {
    this.graphs = graphs;
    this.env = env;
  }

  has(graph_id: string): boolean {
    return this.graphs.some((graph) => graph.graph_id === graph_id);
  }

  /**
   * @throws ApiError graph_not_found, or graph_unavailable with the reason why it did not load
   */
  require(graph_id: string): void {
    if (!this.has(graph_id)) {
      throw new ApiError("graph_not_found", {
        graph_id,
        graphs: this.graphs.map((graph) => graph.graph_id).join(", "),
      });
    }
    const reason = this.failures[graph_id];
    if (reason !== undefined) throw new ApiError("graph_unavailable", { graph_id, reason });
  }
}
