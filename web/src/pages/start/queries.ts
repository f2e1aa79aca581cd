import { queryOptions } from "@tanstack/react-query";
import type { Dataset } from "../../../../src/experiments/contract/datasets/datasets.ts";
import { api } from "../../api/request.ts";
import { EXPERIMENTS } from "../experiments/queries.ts";
import { MAX_LISTED } from "./home-list.tsx";

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
