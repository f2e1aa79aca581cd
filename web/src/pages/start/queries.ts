import { queryOptions } from "@tanstack/react-query";
import type { Assistant } from "../../../../src/agent-server/contract/records.ts";
import type { Dataset } from "../../../../src/experiments/contract/datasets/datasets.ts";
import { api } from "../../api/request.ts";
import { EXPERIMENTS } from "../experiments/queries.ts";

/** Maximum number of assistants and of datasets on the home page. */
export const MAX_LISTED = 8;

/** Fetches one assistant more than the page lists, to detect whether there are more. */
export const assistantsQuery = queryOptions({
  queryKey: ["start", "assistants"],
  queryFn: ({ signal }) =>
    api.post<Assistant[]>(
      "/assistants/search",
      { limit: MAX_LISTED + 1, sort_by: "created_at", sort_order: "asc" },
      { signal },
    ),
});

export const datasetsQuery = queryOptions({
  queryKey: [...EXPERIMENTS, "start"],
  queryFn: ({ signal }) => api.get<Dataset[]>("/api/v1/datasets", { query: { limit: MAX_LISTED }, signal }),
});

/** Input schema of an assistant. Not retried, because the request fails for a graph that cannot be loaded. */
export const schemasQuery = (assistant_id: string) =>
  queryOptions({
    queryKey: ["start", "schemas", assistant_id],
    queryFn: ({ signal }) =>
      api.get<{ input_schema: object | null }>(`/assistants/${assistant_id}/schemas`, { signal }),
    retry: false,
    staleTime: 60_000,
  });
