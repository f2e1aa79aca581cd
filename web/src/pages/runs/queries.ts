import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import type {
  RunOverviewItem,
  RunOverviewPage,
  RunThroughput,
} from "../../../../src/agent-server/contract/app-runs.ts";
import type { Assistant, CancelAction, Run } from "../../../../src/agent-server/contract/records.ts";
import { api } from "../../api/request.ts";
import { type RunsSearch, SPANS } from "./page.ts";

/** How often what runs is looked at, in ms. A page that nobody sees does not look. */
const LIST_EVERY_MS = 2_000;
const THROUGHPUT_EVERY_MS = 5_000;

/** Of all that changes while runs come and go. */
export const runsKey = ["runs"] as const;

const WHOLE_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * A part of a thread's id, in small letters; undefined for a whole one, which the server looks for. The table shows ends of ids, and
 * people write what they see: those runs are picked out of what has been fetched.
 */
export const partOfId = (thread: string | undefined): string | undefined =>
  thread === undefined || WHOLE_ID.test(thread) ? undefined : thread.toLowerCase();

/** @param search a part of a thread's id changes nothing */
export const runsQuery = ({ status, assistant, thread: written, since }: RunsSearch) => {
  const thread = partOfId(written) === undefined ? written : undefined;
  return infiniteQueryOptions({
    queryKey: [...runsKey, "list", { status, assistant, thread, since }],
    queryFn: ({ signal, pageParam }) =>
      api.get<RunOverviewPage>("/app/api/runs", {
        signal,
        query: {
          status: status === "active" ? ["pending", "running"] : status,
          assistant_id: assistant,
          thread_id: thread,
          created_from: since && new Date(Date.now() - SPANS[since] * 60_000).toISOString(),
          cursor: pageParam,
        },
      }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    refetchInterval: LIST_EVERY_MS,
    placeholderData: keepPreviousData,
  });
};

export const throughputQuery = queryOptions({
  queryKey: [...runsKey, "throughput"],
  queryFn: ({ signal }) => api.get<RunThroughput>("/app/api/runs/stats", { signal }),
  refetchInterval: THROUGHPUT_EVERY_MS,
});

/** Null: there is no such run, or no more. */
export const runQuery = (run_id: string) =>
  queryOptions({
    queryKey: [...runsKey, "one", run_id],
    queryFn: async ({ signal }): Promise<RunOverviewItem | null> => {
      const { runs } = await api.get<RunOverviewPage>("/app/api/runs", { signal, query: { run_id } });
      return runs[0] ?? null;
    },
    refetchInterval: ({ state }) => (state.data?.ended_at === null ? LIST_EVERY_MS : false),
  });

type RunKey = Pick<RunOverviewItem, "thread_id" | "run_id">;

const pathOf = ({ thread_id, run_id }: RunKey) => `/threads/${thread_id}/runs/${run_id}`;

/** What a run was given. */
export const orderQuery = (run: RunKey) =>
  queryOptions({
    queryKey: ["run", "order", run.run_id],
    queryFn: ({ signal }) => api.get<Run>(pathOf(run), { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** What a run that has ended answered. */
export const outputQuery = (run: RunKey) =>
  queryOptions({
    queryKey: ["run", "output", run.run_id],
    queryFn: ({ signal }) => api.get<unknown>(`${pathOf(run)}/join`, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** The workspace's assistants: runs name them by id alone. */
export const assistantsQuery = queryOptions({
  queryKey: ["assistants", "all"],
  queryFn: ({ signal }) => api.post<Assistant[]>("/assistants/search", { limit: 1000 }, { signal }),
  staleTime: 60_000,
});

export const cancelRun = (run: RunKey, action: CancelAction): Promise<void> =>
  api.post(`${pathOf(run)}/cancel`, undefined, { query: { action } });

/** All runs of the workspace with the status, on whatever page they are. */
export const cancelByStatus = (status: "pending" | "running" | "all", action: CancelAction): Promise<void> =>
  api.post("/runs/cancel", { status }, { query: { action } });

/** These runs, thread by thread: all of a thread, or none of it when one has ended meanwhile. */
export async function cancelThese(runs: readonly RunKey[], action: CancelAction): Promise<void> {
  for (const [thread_id, own] of Map.groupBy(runs, (run) => run.thread_id))
    await api.post("/runs/cancel", { thread_id, run_ids: own.map(({ run_id }) => run_id) }, { query: { action } });
}
