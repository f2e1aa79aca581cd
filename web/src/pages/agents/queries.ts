import { queryOptions } from "@tanstack/react-query";
import type { AssistantFilter } from "../../../../src/agent-server/contract/assistants.ts";
import type {
  Assistant,
  AssistantVersion,
  GraphDrawing,
  GraphSchemas,
} from "../../../../src/agent-server/contract/records.ts";
import { api, type RequestOptions } from "../../api/request.ts";
import type { JsonSchema } from "../../ui/form/json-schema.ts";

/** Maximum page size of an assistant search. */
const LIMIT = 1_000;

export const findAssistants = (
  filter: AssistantFilter & { limit?: number },
  options: Pick<RequestOptions, "signal" | "own"> = {},
) =>
  api.post<Assistant[]>("/assistants/search", { limit: LIMIT, sort_by: "name", sort_order: "asc", ...filter }, options);

/** All assistants, sorted by name. One page is enough: a workspace has tens of assistants. */
export const assistantsQuery = queryOptions({
  queryKey: ["assistants"],
  queryFn: ({ signal }) => findAssistants({}, { signal }),
});

/** The assistants of this server, even while the pages show those of a deployment. */
export const ownAssistantsQuery = queryOptions({
  queryKey: ["own assistants"],
  queryFn: ({ signal }) => findAssistants({}, { signal, own: true }),
});

export const assistantQuery = (assistant_id: string) =>
  queryOptions({
    queryKey: ["assistants", assistant_id],
    queryFn: ({ signal }) => api.get<Assistant>(`/assistants/${assistant_id}`, { signal }),
  });

export const versionsQuery = (assistant_id: string) =>
  queryOptions({
    queryKey: ["assistants", assistant_id, "versions"],
    queryFn: ({ signal }) =>
      api.post<AssistantVersion[]>(`/assistants/${assistant_id}/versions`, { limit: LIMIT }, { signal }),
  });

/** JSON Schemas of a graph. */
export type Schemas = { [Part in Exclude<keyof GraphSchemas, "graph_id">]?: JsonSchema | null };

/** @param graph an assistant ID or a graph name. The schemas are cached for minutes, because graphs change only when code is deployed. */
export const schemasQuery = (graph: string, { own = false } = {}) =>
  queryOptions({
    queryKey: ["schemas", graph, own],
    queryFn: ({ signal }) => api.get<Schemas>(`/assistants/${encodeURIComponent(graph)}/schemas`, { signal, own }),
    staleTime: 300_000,
  });

export const drawingQuery = (assistant_id: string, xray: boolean) =>
  queryOptions({
    queryKey: ["drawing", assistant_id, xray],
    queryFn: ({ signal }) => api.get<GraphDrawing>(`/assistants/${assistant_id}/graph`, { query: { xray }, signal }),
    staleTime: 300_000,
  });
