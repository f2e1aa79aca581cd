import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import type { ExampleWithRuns } from "../../../../src/experiments/contract/comparison.ts";
import type { Dataset } from "../../../../src/experiments/contract/datasets.ts";
import type { Example } from "../../../../src/experiments/contract/examples.ts";
import type { Feedback } from "../../../../src/experiments/contract/feedback.ts";
import type { KeyConfig } from "../../../../src/experiments/contract/feedback-configs.ts";
import type { ExperimentRun } from "../../../../src/experiments/contract/runs.ts";
import type { Session } from "../../../../src/experiments/contract/sessions.ts";
import { api } from "../../api/request.ts";
import type { Sort } from "../../ui/table-columns.ts";

/** All that is below this is fetched anew after a change. */
export const EXPERIMENTS = ["experiments"] as const;

/** Records of a page of what may be long. */
const PAGE = 100;

/** The most experiments of a dataset that are listed: what one answer holds. */
export const MAX_SESSIONS = 1_000;

/** Pages follow one another until one is not full. */
const paged = {
  initialPageParam: 0,
  getNextPageParam: (last: readonly unknown[], pages: readonly unknown[]) =>
    last.length < PAGE ? undefined : pages.length * PAGE,
};

export const datasetsQuery = (name_contains: string | undefined, { by, descending }: Sort) =>
  infiniteQueryOptions({
    queryKey: [...EXPERIMENTS, "datasets", name_contains, by, descending],
    queryFn: ({ pageParam, signal }) =>
      api.get<Dataset[]>("/api/v1/datasets", {
        query: { name_contains, sort_by: by, sort_by_desc: descending, limit: PAGE, offset: pageParam },
        signal,
      }),
    ...paged,
  });

export const datasetQuery = (id: string) =>
  queryOptions({
    queryKey: [...EXPERIMENTS, "dataset", id],
    queryFn: ({ signal }) => api.get<Dataset>(`/api/v1/datasets/${encodeURIComponent(id)}`, { signal }),
  });

/** The experiments of a dataset with their statistics, the newest first. */
export const sessionsQuery = (dataset_id: string) =>
  queryOptions({
    queryKey: [...EXPERIMENTS, "sessions", dataset_id],
    queryFn: ({ signal }) =>
      api.get<Session[]>("/api/v1/sessions", {
        query: { reference_dataset: dataset_id, include_stats: true, limit: MAX_SESSIONS },
        signal,
      }),
  });

/** Experiments that belong to no dataset, the newest first. */
export const looseSessionsQuery = (name_contains: string | undefined) =>
  infiniteQueryOptions({
    queryKey: [...EXPERIMENTS, "loose", name_contains],
    queryFn: ({ pageParam, signal }) =>
      api.get<Session[]>("/api/v1/sessions", {
        query: { reference_free: true, name_contains, limit: PAGE, offset: pageParam },
        signal,
      }),
    ...paged,
  });

export const sessionQuery = (id: string) =>
  queryOptions({
    queryKey: [...EXPERIMENTS, "session", id],
    queryFn: ({ signal }) => api.get<Session>(`/api/v1/sessions/${encodeURIComponent(id)}`, { signal }),
  });

/** What the feedback keys mean, and which way is up. */
export const keysQuery = queryOptions({
  queryKey: [...EXPERIMENTS, "keys"],
  queryFn: ({ signal }) => api.get<KeyConfig[]>("/api/v1/feedback-configs", { query: { limit: 1_000 }, signal }),
});

export const examplesQuery = (dataset_id: string, words: string | undefined) =>
  infiniteQueryOptions({
    queryKey: [...EXPERIMENTS, "examples", dataset_id, words],
    queryFn: ({ pageParam, signal }) =>
      api.get<Example[]>("/api/v1/examples", {
        query: { dataset: dataset_id, full_text_contains: words, limit: PAGE, offset: pageParam },
        signal,
      }),
    ...paged,
  });

export const exampleQuery = (id: string) =>
  queryOptions({
    queryKey: [...EXPERIMENTS, "example", id],
    queryFn: ({ signal }) => api.get<Example>(`/api/v1/examples/${encodeURIComponent(id)}`, { signal }),
  });

/** What an experiment made of the examples, without whole inputs and outputs. Its order is that of the examples unless sorted. */
export const rowsQuery = (
  dataset_id: string,
  session_id: string,
  { sort, onlyErrors }: { sort: Sort | undefined; onlyErrors: boolean },
) =>
  infiniteQueryOptions({
    queryKey: [...EXPERIMENTS, "rows", dataset_id, session_id, sort, onlyErrors],
    queryFn: ({ pageParam, signal }) =>
      api.post<ExampleWithRuns[]>(
        `/api/v1/datasets/${dataset_id}/runs`,
        {
          session_ids: [session_id],
          preview: true,
          limit: PAGE,
          offset: pageParam,
          sort_params: sort && { sort_by: sort.by, sort_order: sort.descending ? "DESC" : "ASC" },
          filters: onlyErrors ? { [session_id]: ['eq(status, "error")'] } : undefined,
        },
        { signal },
      ),
    ...paged,
  });

export const runQuery = (id: string) =>
  queryOptions({
    queryKey: [...EXPERIMENTS, "run", id],
    queryFn: ({ signal }) => api.get<ExperimentRun>(`/api/v1/runs/${encodeURIComponent(id)}`, { signal }),
  });

export const feedbackQuery = (run_id: string) =>
  queryOptions({
    queryKey: [...EXPERIMENTS, "feedback", run_id],
    queryFn: ({ signal }) => api.get<Feedback[]>("/api/v1/feedback", { query: { run: run_id, limit: 1_000 }, signal }),
  });
