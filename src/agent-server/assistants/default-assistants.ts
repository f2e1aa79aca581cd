import type { Database } from "../../platform/database/database.ts";
import { idOfName } from "../../platform/lib/ids.ts";
import type { GraphCatalog } from "../graph-catalog.ts";
import {
  deleteAssistant,
  insertAssistant,
  listDefaultAssistants,
  listDefaultAssistantsExcept,
  setAssistant,
} from "../storage/assistants.ts";

/** Clients compute the same ids, so the namespace and the UUID version (5) are part of the protocol. */
const NAMESPACE = "6ba7b821-9dad-11d1-80b4-00c04fd430c8";

const NEW_ASSISTANT = { config: "{}", context: "{}", metadata: JSON.stringify({ created_by: "system" }) };

/** The id of a graph's default assistant, the same in every workspace. */
export const defaultAssistantId = (graph_id: string): string => idOfName(graph_id, NAMESPACE);

/** Maintains the default assistant of every graph in each workspace, with the graph's name and the settings of langgraph.json. */
export class DefaultAssistants {
  readonly #database: Database;
  readonly #catalog: GraphCatalog;
  /** Workspaces whose default assistants were synchronized since the graphs were loaded. */
  #synced = new Map<string, Promise<void>>();

  constructor(database: Database, catalog: GraphCatalog) {
    this.#database = database;
    this.#catalog = catalog;
  }

  /**
   * Deletes the default assistants of removed graphs. Those of other graphs are updated at the next request of each workspace.
   */
  async renew(): Promise<void> {
    this.#synced = new Map();
    const graph_ids = this.#catalog.graphs.map(({ graph_id }) => graph_id);
    await this.#database.write(async (tx) => {
      for (const row of await listDefaultAssistantsExcept(tx, graph_ids))
        if (row.assistant_id === defaultAssistantId(row.graph_id)) await deleteAssistant(tx, row);
    });
  }

  /** Resolves once the workspace has its default assistants. Synchronizes once per workspace; retries after a failure. */
  ensure(tenant_id: string): Promise<void> {
    const synced = this.#synced;
    const known = synced.get(tenant_id);
    if (known) return known;
    const syncing = this.#sync(tenant_id);
    synced.set(tenant_id, syncing);
    syncing.catch(() => synced.delete(tenant_id));
    return syncing;
  }

  async #sync(tenant_id: string): Promise<void> {
    await this.#database.write(async (tx) => {
      const existing = new Map((await listDefaultAssistants(tx, tenant_id)).map((row) => [row.assistant_id, row]));
      for (const { graph_id, description } of this.#catalog.graphs) {
        const assistant_id = defaultAssistantId(graph_id);
        const configured = this.#catalog.content.default_assistants[graph_id];
        const settings = configured && {
          config: JSON.stringify(configured.config),
          context: JSON.stringify(configured.context),
        };
        const fields = { ...settings, name: graph_id, description };
        const row = existing.get(assistant_id);
        // Only these: a client may have changed the others since the row was read.
        if (row && Object.entries(fields).some(([name, value]) => row[name as keyof typeof row] !== value))
          await setAssistant(tx, { assistant_id, tenant_id, ...fields });
        if (!row) await insertAssistant(tx, { ...NEW_ASSISTANT, assistant_id, tenant_id, graph_id, ...fields });
      }
    });
  }
}
