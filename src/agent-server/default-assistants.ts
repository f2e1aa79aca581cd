import type { Database } from "../platform/database/database.ts";
import { idOfName } from "../platform/lib/ids.ts";
import type { GraphCatalog } from "./graph-catalog.ts";
import {
  deleteAssistant,
  insertAssistant,
  listDefaultAssistants,
  listDefaultAssistantsExcept,
  setAssistant,
} from "./storage/assistants.ts";

/** Clients compute these ids themselves, so namespace and method must be exactly the protocol's. */
const NAMESPACE = "6ba7b821-9dad-11d1-80b4-00c04fd430c8";

/** The fixed id of a graph's default assistant, the same in every workspace. */
export const defaultAssistantId = (graph_id: string): string => idOfName(graph_id, NAMESPACE);

/**
 * Each workspace has the default assistant of every graph: named like the graph, described as in langgraph.json, with what
 * the operator configured.
 */
export class DefaultAssistants {
  readonly #database: Database;
  readonly #catalog: GraphCatalog;
  /** Workspaces whose default assistants were brought up to date since the graphs were loaded. */
  #met = new Map<string, Promise<void>>();

  constructor(database: Database, catalog: GraphCatalog) {
    this.#database = database;
    this.#catalog = catalog;
  }

  /** Drops those whose graph is gone, and looks at each workspace anew when it is next met. Called when graphs change. */
  async renew(): Promise<void> {
    this.#met = new Map();
    const graph_ids = this.#catalog.graphs.map(({ graph_id }) => graph_id);
    await this.#database.write(async (tx) => {
      for (const row of await listDefaultAssistantsExcept(tx, graph_ids))
        if (row.assistant_id === defaultAssistantId(row.graph_id)) await deleteAssistant(tx, row);
    });
  }

  /** Done when the workspace has its default assistants. Works once; a failure is not remembered. */
  meet(tenant_id: string): Promise<void> {
    const met = this.#met;
    const known = met.get(tenant_id);
    if (known) return known;
    const meeting = this.#sync(tenant_id);
    met.set(tenant_id, meeting);
    meeting.catch(() => met.delete(tenant_id));
    return meeting;
  }

  async #sync(tenant_id: string): Promise<void> {
    await this.#database.write(async (tx) => {
      const existing = new Map((await listDefaultAssistants(tx, tenant_id)).map((row) => [row.assistant_id, row]));
      for (const { graph_id, description } of this.#catalog.graphs) {
        const assistant_id = defaultAssistantId(graph_id);
        const wish = this.#catalog.content.default_assistants[graph_id];
        const settings = wish && { config: JSON.stringify(wish.config), context: JSON.stringify(wish.context) };
        const row = existing.get(assistant_id);
        if (row) await setAssistant(tx, { ...row, ...settings, name: graph_id, description });
        else {
          const metadata = JSON.stringify({ created_by: "system" });
          await insertAssistant(tx, {
            assistant_id,
            tenant_id,
            graph_id,
            name: graph_id,
            description,
            metadata,
            config: "{}",
            context: "{}",
            ...settings,
          });
        }
      }
    });
  }
}
