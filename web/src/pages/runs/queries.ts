import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import type {
  RunMonitoring,
  RunOverviewItem,
  RunOverviewPage,
  RunPreview,
  RunPreviews,
  RunThroughput,
} from "../../../../src/agent-server/contract/app-runs.ts";
import type { Run } from "../../../../src/agent-server/contract/records.ts";
import type { UsageOverTime } from "../../../../src/experiments/contract/traces/app-traces.ts";
import { api } from "../../api/request.ts";
import { DEFAULT_RANGE, type MonitoringSearch, type RunsSearch, SPANS, STATUS_GROUPS } from "./page.ts";

/** Poll intervals. Hidden pages do not poll. */
const LIST_POLL_MS = 2_000;
const THROUGHPUT_POLL_MS = 5_000;
const MONITORING_POLL_MS = 30_000;
const USAGE_POLL_MS = 60_000;

/** Key prefix of the queries whose results change with the runs, except queries of the thread page. */
export const runsKey = ["runs"] as const;

const COMPLETE_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * Returns a partial thread ID in lower case. Returns undefined for a complete ID, because the server filters by complete IDs. The page
 * filters the loaded runs by a partial ID, so that users can search for the ends of IDs that the table shows.
 */
export const partOfId = (thread: string | undefined): string | undefined =>
  thread === undefined || COMPLETE_ID.test(thread) ? undefined : thread.toLowerCase();

/** @param search filters of the list. A partial thread ID is ignored. */
export const runsQuery = (search: RunsSearch) => {
  const { status, assistant, thread: thread_or_part, since, ended_from, ended_until } = search;
  const thread = partOfId(thread_or_part) === undefined ? thread_or_part : undefined;
  return infiniteQueryOptions({
    queryKey: [...runsKey, "list", { status, assistant, thread, since, ended_from, ended_until }],
    queryFn: ({ signal, pageParam }) =>
      api.get<RunOverviewPage>("/app/api/runs", {
        signal,
        query: {
          status: status === "active" || status === "failed" ? STATUS_GROUPS[status] : status,
          assistant_id: assistant,
          thread_id: thread,
          created_from: since && new Date(Date.now() - SPANS[since] * 60_000).toISOString(),
          ended_from,
          ended_until,
          cursor: pageParam,
        },
      }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    refetchInterval: LIST_POLL_MS,
    placeholderData: keepPreviousData,
  });
};

export const throughputQuery = queryOptions({
  queryKey: [...runsKey, "throughput"],
  queryFn: ({ signal }) => api.get<RunThroughput>("/app/api/runs/stats", { signal }),
  refetchInterval: THROUGHPUT_POLL_MS,
});

export const monitoringQuery = ({ range = DEFAULT_RANGE, assistant }: MonitoringSearch) =>
  queryOptions({
    queryKey: [...runsKey, "monitoring", range, assistant],
    queryFn: ({ signal }) =>
      api.get<RunMonitoring>("/app/api/runs/monitoring", { signal, query: { range, assistant_id: assistant } }),
    refetchInterval: MONITORING_POLL_MS,
    placeholderData: keepPreviousData,
  });

/** Tokens and costs of traced runs, in the buckets of {@link monitoringQuery}. Reads the metadata of all traces in the time range. */
export const usageQuery = ({ from, until, bucket_ms }: RunMonitoring, assistant_id: string | undefined) =>
  queryOptions({
    queryKey: ["usage", from, until, assistant_id],
    queryFn: ({ signal }) =>
      api.post<UsageOverTime>("/app/api/traces/usage", { from, until, bucket_ms, assistant_id }, { signal }),
    refetchInterval: USAGE_POLL_MS,
    placeholderData: keepPreviousData,
  });

/** A run by ID. Null if the run does not exist. */
export const runQuery = (run_id: string) =>
  queryOptions({
    queryKey: [...runsKey, "one", run_id],
    queryFn: async ({ signal }): Promise<RunOverviewItem | null> => {
      const { runs } = await api.get<RunOverviewPage>("/app/api/runs", { signal, query: { run_id } });
      return runs[0] ?? null;
    },
    refetchInterval: ({ state }) => (state.data?.ended_at === null ? LIST_POLL_MS : false),
  });

/** Previews of a run's input and output, which do not change after the run has ended. Null if the run does not exist. */
export const previewQuery = ({ run_id, ended_at }: RunOverviewItem) =>
  queryOptions({
    queryKey: ["run", "preview", run_id, ended_at !== null],
    queryFn: () => readPreview(run_id),
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: keepPreviousData,
    retry: false,
  });

/** The server's limit for a request. */
const MAX_PREVIEWS = 50;

type Previews = ReadonlyMap<string, RunPreview>;

/** Collects the runs of the rows that are rendered at once. */
let batch: { run_ids: string[]; previews: Promise<Previews> } | undefined;

async function readPreview(run_id: string): Promise<RunPreview | null> {
  if (!batch || batch.run_ids.length === MAX_PREVIEWS) {
    const run_ids: string[] = [];
    batch = { run_ids, previews: Promise.resolve().then(() => readPreviews(run_ids)) };
  }
  batch.run_ids.push(run_id);
  return (await batch.previews).get(run_id) ?? null;
}

async function readPreviews(run_id: readonly string[]): Promise<Previews> {
  batch = undefined;
  const { previews } = await api.get<RunPreviews>("/app/api/runs/previews", { query: { run_id } });
  return new Map(previews.map((each) => [each.run_id, each]));
}

export type RunKey = Pick<RunOverviewItem, "thread_id" | "run_id">;

export const runPath = ({ thread_id, run_id }: RunKey) => `/threads/${thread_id}/runs/${run_id}`;

/** A run with its input and settings. */
export const runRequestQuery = (run: RunKey) =>
  queryOptions({
    queryKey: ["run", "request", run.run_id],
    queryFn: ({ signal }) => api.get<Run>(runPath(run), { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** Output of a run that has ended. */
export const outputQuery = (run: RunKey) =>
  queryOptions({
    queryKey: ["run", "output", run.run_id],
    queryFn: ({ signal }) => api.get<unknown>(`${runPath(run)}/join`, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
