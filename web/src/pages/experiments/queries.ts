import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import type { ExampleWithRuns } from "../../../../src/experiments/contract/comparison.ts";
import type { DatasetVersion } from "../../../../src/experiments/contract/datasets/dataset-versions.ts";
import type { Dataset } from "../../../../src/experiments/contract/datasets/datasets.ts";
import type { Example } from "../../../../src/experiments/contract/datasets/examples.ts";
import type { Feedback } from "../../../../src/experiments/contract/feedback/feedback.ts";
import type { KeyConfig } from "../../../../src/experiments/contract/feedback/feedback-configs.ts";
import type { ExperimentRun } from "../../../../src/experiments/contract/runs.ts";
import type { Session } from "../../../../src/experiments/contract/sessions.ts";
import type { PayloadSide } from "../../../../src/platform/contract/preview.ts";
import { api } from "../../api/request.ts";
import type { Sort } from "../../ui/table/columns.ts";

/** Key prefix of all queries of datasets, experiments and feedback keys, except comparisons, for invalidation after a change. */
export const EXPERIMENTS = ["experiments"] as const;

const PAGE = 100;

/** Maximum number of experiments in a list, which is the maximum page size of the API. */
export const MAX_SESSIONS = 1_000;

/** Options for offset pagination. A page that is not full is the last page. */
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

/** A dataset's experiments with statistics, newest first. */
export const sessionsQuery = (dataset_id: string) =>
  queryOptions({
    queryKey: [...EXPERIMENTS, "sessions", dataset_id],
    queryFn: ({ signal }) =>
      api.get<Session[]>("/api/v1/sessions", {
        query: { reference_dataset: dataset_id, include_stats: true, limit: MAX_SESSIONS },
        signal,
      }),
  });

export const sessionQuery = (id: string) =>
  queryOptions({
    queryKey: [...EXPERIMENTS, "session", id],
    queryFn: ({ signal }) => api.get<Session>(`/api/v1/sessions/${encodeURIComponent(id)}`, { signal }),
  });

/** Configuration of the feedback keys, including whether a lower score is better. */
export const keysQuery = queryOptions({
  queryKey: [...EXPERIMENTS, "keys"],
  queryFn: ({ signal }) => api.get<KeyConfig[]>("/api/v1/feedback-configs", { query: { limit: 1_000 }, signal }),
});

export const examplesQuery = (
  dataset_id: string,
  { text, split, as_of }: { text: string | undefined; split: string | undefined; as_of: string | undefined },
) =>
  infiniteQueryOptions({
    queryKey: [...EXPERIMENTS, "examples", dataset_id, text, split, as_of],
    queryFn: ({ pageParam, signal }) =>
      api.get<Example[]>("/api/v1/examples", {
        query: { dataset: dataset_id, full_text_contains: text, splits: split, as_of, limit: PAGE, offset: pageParam },
        signal,
      }),
    ...paged,
  });

/** The names of the splits of a dataset, in a version or now. */
export const splitsQuery = (dataset_id: string, as_of: string | undefined) =>
  queryOptions({
    queryKey: [...EXPERIMENTS, "splits", dataset_id, as_of],
    queryFn: ({ signal }) => api.get<string[]>(`/api/v1/datasets/${dataset_id}/splits`, { query: { as_of }, signal }),
  });

/** The newest 100 versions of a dataset, and those with tags. */
export const versionsQuery = (dataset_id: string) =>
  queryOptions({
    queryKey: [...EXPERIMENTS, "versions", dataset_id],
    queryFn: async ({ signal }) => {
      const path = `/api/v1/datasets/${dataset_id}`;
      const [newest, tagged] = await Promise.all([
        api.get<DatasetVersion[]>(`${path}/versions`, { query: { limit: 100 }, signal }),
        api.get<DatasetVersion[]>(`${path}/tags`, { signal }),
      ]);
      return [...new Map([...newest, ...tagged].map((version) => [version.as_of, version])).values()].sort((a, b) =>
        b.as_of.localeCompare(a.as_of),
      );
    },
  });

/** Keys of the inputs and expected outputs of a dataset's first examples. */
export const payloadKeysQuery = (dataset: string) =>
  queryOptions({
    queryKey: [...EXPERIMENTS, "payload-keys", dataset],
    queryFn: async ({ signal }): Promise<Record<PayloadSide, string[]>> => {
      const examples = await api.get<Example[]>("/api/v1/examples", { query: { dataset, limit: 20 }, signal });
      const keysOf = (side: PayloadSide) => [...new Set(examples.flatMap((each) => Object.keys(each[side] ?? {})))];
      return { inputs: keysOf("inputs"), outputs: keysOf("outputs") };
    },
    staleTime: 60_000,
  });

/** @param as_of time of a version of the dataset; default: the latest */
export const exampleQuery = (id: string, as_of?: string) =>
  queryOptions({
    queryKey: [...EXPERIMENTS, "example", id, as_of],
    queryFn: ({ signal }) =>
      api.get<Example>(`/api/v1/examples/${encodeURIComponent(id)}`, { query: { as_of }, signal }),
  });

/** An experiment's runs with previews of inputs and outputs, or with the outputs. By default, the runs are in the order of the examples. */
export const rowsQuery = (
  dataset_id: string,
  session_id: string,
  { sort, onlyErrors, isWhole }: { sort: Sort | undefined; onlyErrors: boolean; isWhole: boolean },
) =>
  infiniteQueryOptions({
    queryKey: [...EXPERIMENTS, "rows", dataset_id, session_id, sort, onlyErrors, isWhole],
    queryFn: ({ pageParam, signal }) =>
      api.post<ExampleWithRuns[]>(
        `/api/v1/datasets/${dataset_id}/runs`,
        {
          session_ids: [session_id],
          preview: !isWhole,
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
