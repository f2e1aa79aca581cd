import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import type {
  ComparedRows,
  ComparedRowsQuery,
  Distribution,
} from "../../../../../src/experiments/contract/app-comparison.ts";
import type { ExampleWithRuns, PairComparison } from "../../../../../src/experiments/contract/comparison.ts";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { api } from "../../../api/request.ts";

/** Number of rows in a page. 50 rows are two to four screens, and 0.2 MB with ten experiments. */
export const PAGE = 50;

/** Key prefix of all comparison queries. Not below EXPERIMENTS: after the deletion of an experiment, its comparisons must not be requested. */
export const COMPARISONS = ["comparison"] as const;

/** Key prefix of a dataset's comparison queries, for invalidation after feedback changes. */
export const comparisonKey = (dataset_id: string) => [...COMPARISONS, dataset_id] as const;

const at = (dataset_id: string) => `/api/v1/datasets/${dataset_id}`;

/** Experiments with the given IDs and their statistics, in no particular order. */
export const sessionsQuery = (dataset_id: string, ids: readonly string[]) =>
  queryOptions({
    queryKey: [...comparisonKey(dataset_id), "sessions", [...ids].sort()],
    queryFn: ({ signal }) =>
      ids.length === 0
        ? []
        : api.get<Session[]>("/api/v1/sessions", {
            query: { id: ids, reference_dataset: dataset_id, include_stats: true, limit: 100 },
            signal,
          }),
    placeholderData: keepPreviousData,
  });

/** Experiments of the dataset whose names contain `name`, newest first, as candidates for the comparison. */
export const candidatesQuery = (dataset_id: string, name: string) =>
  queryOptions({
    queryKey: [...comparisonKey(dataset_id), "candidates", name],
    queryFn: ({ signal }) =>
      api.get<Session[]>("/api/v1/sessions", {
        query: { reference_dataset: dataset_id, name_contains: name || undefined, limit: 50 },
        signal,
      }),
    placeholderData: keepPreviousData,
  });

export const distributionsQuery = (dataset_id: string, session_ids: readonly string[]) =>
  queryOptions({
    queryKey: [...comparisonKey(dataset_id), "distributions", session_ids],
    queryFn: ({ signal }) =>
      api.post<Distribution[]>(`/app/api/datasets/${dataset_id}/distributions`, { session_ids }, { signal }),
    enabled: session_ids.length > 0,
    placeholderData: keepPreviousData,
  });

/** Differences of the other experiments from the first. The first request with `significance` can take seconds. */
export const differencesQuery = (dataset_id: string, [baseline, ...others]: readonly string[], significance: boolean) =>
  queryOptions({
    queryKey: [...comparisonKey(dataset_id), "differences", baseline, others, significance],
    queryFn: async ({ signal }) => {
      const body = { baseline_session_id: baseline, comparison_session_ids: others, limit: 0, significance };
      return (await api.post<{ comparisons: PairComparison[] }>(`${at(dataset_id)}/compare`, body, { signal }))
        .comparisons;
    },
    enabled: others.length > 0,
    staleTime: 60_000,
  });

export type Narrowing = Omit<ComparedRowsQuery, "offset" | "limit">;

export const readRows = (
  dataset_id: string,
  query: Partial<ComparedRowsQuery>,
  signal?: AbortSignal,
): Promise<ComparedRows> => api.post(`/app/api/datasets/${dataset_id}/compared-rows`, query, { signal });

/** @param page zero-based index of a page of {@link PAGE} rows */
export const rowsQuery = (dataset_id: string, narrowing: Narrowing, page: number) =>
  queryOptions({
    queryKey: [...comparisonKey(dataset_id), "rows", narrowing, page],
    queryFn: ({ signal }) => readRows(dataset_id, { ...narrowing, offset: page * PAGE, limit: PAGE }, signal),
    staleTime: 60_000,
  });

export const positionQuery = (dataset_id: string, narrowing: Narrowing, example_id: string) =>
  queryOptions({
    queryKey: [...comparisonKey(dataset_id), "position", narrowing, example_id],
    queryFn: async ({ signal }) =>
      (await readRows(dataset_id, { ...narrowing, limit: 0, example_id }, signal)).position,
  });

/** An example with its runs and their feedback. Null if the example does not exist. */
export const detailQuery = (dataset_id: string, session_ids: readonly string[], example_id: string) =>
  queryOptions({
    queryKey: [...comparisonKey(dataset_id), "detail", session_ids, example_id],
    queryFn: async ({ signal }) => {
      const [found] = await api.post<ExampleWithRuns[]>(
        `${at(dataset_id)}/runs`,
        { session_ids, example_ids: [example_id], limit: 1 },
        { signal },
      );
      return found ?? null;
    },
  });
