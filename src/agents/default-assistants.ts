import { idOfName } from "../lib/ids.ts";
import type { JsonObject } from "../lib/json.ts";
import { deleteAssistant, insertAssistant, listDefaultAssistants, setAssistant } from "../storage/assistants.ts";
import type { Database } from "../storage/database.ts";
import type { CatalogGraph } from "./graph-catalog.ts";

/** Clients compute these ids themselves, so namespace and method must be exactly the protocol's. */
const NAMESPACE = "6ba7b821-9dad-11d1-80b4-00c04fd430c8";

/** The fixed id of a graph's default assistant. */
export const defaultAssistantId = (graph_id: string): string => idOfName(graph_id, NAMESPACE);

/**
 * Gives every graph its default assistant: named like the graph, described as in langgraph.json, with what the
 * operator configured. Those whose graph is gone are dropped.
 */
export async function syncDefaultAssistants(
  database: Database,
  tenant_id: string,
  graphs: readonly CatalogGraph[],
  configured: Readonly<Record<string, { config: JsonObject; context: JsonObject }>>,
): Promise<void> {
  await database.write(async (tx) => {
    const existing = new Map((await listDefaultAssistants(tx, tenant_id)).map((row) => [row.assistant_id, row]));
    for (const { graph_id, description } of graphs) {
      const assistant_id = defaultAssistantId(graph_id);
      const wish = configured[graph_id];
      const settings = wish && { config: JSON.stringify(wish.config), context: JSON.stringify(wish.context) };
      const row = existing.get(assistant_id);
      existing.delete(assistant_id);
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
    for (const row of existing.values()) {
      if (row.assistant_id === defaultAssistantId(row.graph_id)) await deleteAssistant(tx, row.assistant_id);
    }
  });
}
