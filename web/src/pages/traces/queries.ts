import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import type { Feedback } from "../../../../src/experiments/contract/feedback/feedback.ts";
import type { ExperimentRun, RunStats } from "../../../../src/experiments/contract/runs.ts";
import type { Session } from "../../../../src/experiments/contract/sessions.ts";
import type { Trace, TraceRun, TracesPage } from "../../../../src/experiments/contract/traces/app-traces.ts";
import { api } from "../../api/request.ts";
import type { Sort } from "../../ui/table/columns.ts";
import { conditionsOf, isFiltered, type ProjectSearch } from "./project/search.ts";

/** Key prefix of all queries whose results depend on traces. */
export const TRACES = ["traces"] as const;

/** Poll intervals. Hidden pages do not poll. */
const TRACE_POLL_MS = 1_000;
const LIST_POLL_MS = 2_000;
const STATS_POLL_MS = 5_000;
/** Longer interval for filters and for sort orders other than the start time. Such queries may read all runs of a project. */
const FILTERED_POLL_MS = 10_000;
const PROJECTS_PAGE = 100;

export const projectsQuery = (name_contains: string | undefined, { by, descending }: Sort) =>
  infiniteQueryOptions({
    queryKey: [...TRACES, "projects", name_contains, by, descending],
    queryFn: ({ pageParam, signal }) =>
      api.get<Session[]>("/api/v1/sessions", {
        query: {
          reference_free: true,
          include_stats: true,
          name_contains,
          sort_by: by,
          sort_by_desc: descending,
          limit: PROJECTS_PAGE,
          offset: pageParam,
        },
        signal,
      }),
    initialPageParam: 0,
    getNextPageParam: (last, pages) => (last.length < PROJECTS_PAGE ? undefined : pages.length * PROJECTS_PAGE),
    refetchInterval: STATS_POLL_MS,
    placeholderData: keepPreviousData,
  });

export const projectQuery = (id: string) =>
  queryOptions({
    queryKey: [...TRACES, "project", id],
    queryFn: ({ signal }) => api.get<Session>(`/api/v1/sessions/${encodeURIComponent(id)}`, { signal }),
    refetchInterval: STATS_POLL_MS,
  });

/** Statistics of the runs that match the filters. Without filters, the page shows the project's own statistics. */
export const matchingStatsQuery = (session_id: string, search: ProjectSearch) =>
  queryOptions({
    queryKey: [...TRACES, "stats", session_id, conditionsOf(search)],
    queryFn: ({ signal }) =>
      api.post<RunStats>("/api/v1/runs/stats", { session: [session_id], ...conditionsOf(search) }, { signal }),
    enabled: isFiltered(search),
    refetchInterval: FILTERED_POLL_MS,
    placeholderData: keepPreviousData,
  });

export const DEFAULT_SORT = "-start_time";

export const runsQuery = (session_id: string, search: ProjectSearch, { by, descending }: Sort) =>
  infiniteQueryOptions({
    queryKey: [...TRACES, "list", session_id, conditionsOf(search), by, descending],
    queryFn: ({ pageParam, signal }) =>
      api.post<TracesPage>(
        "/app/api/traces/query",
        { session_id, ...conditionsOf(search), order_by: by, descending, cursor: pageParam },
        { signal },
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    refetchInterval: by === "start_time" && !isFiltered(search) ? LIST_POLL_MS : FILTERED_POLL_MS,
    placeholderData: keepPreviousData,
  });

/** A trace, read from the API or through a public link. */
export interface TraceSource {
  trace_id: string;
  /** Token of a public link. The page is then read-only and needs no API key. */
  token?: string;
}

export type LoadedTrace = Omit<Trace, "next">;

export const traceQuery = ({ trace_id, token }: TraceSource) =>
  queryOptions({
    queryKey: [...TRACES, "trace", trace_id, token],
    queryFn: async ({ signal }): Promise<LoadedTrace> => {
      if (token !== undefined) return readShare(token, signal);
      let page = await api.get<Trace>(`/app/api/traces/${encodeURIComponent(trace_id)}`, { signal });
      const runs: TraceRun[] = page.runs;
      while (page.next !== null) {
        page = await api.get<Trace>(`/app/api/traces/${trace_id}`, { query: { after: page.next }, signal });
        runs.push(...page.runs);
      }
      return { ...page, runs };
    },
    // A large trace is read less often.
    refetchInterval: ({ state: { data } }) => (data?.status === "pending" ? TRACE_POLL_MS + data.runs.length : false),
    // Disabled, because comparing 25,000 runs each second takes longer than rendering them.
    structuralSharing: false,
  });

const SHARED_FIELDS: (keyof ExperimentRun)[] = [
  ...(["id", "parent_run_id", "dotted_order", "name", "run_type", "status", "start_time", "end_time"] as const),
  ...(["first_token_time", "error", "total_tokens", "total_cost", "tags"] as const),
];

interface SharedPage {
  runs: ExperimentRun[];
  cursors: { next: string | null };
}

/** Reads the runs of a public link: all runs of a trace, or a run and its descendants. */
async function readShare(token: string, signal: AbortSignal): Promise<LoadedTrace> {
  const path = `/api/v1/public/${encodeURIComponent(token)}`;
  const top = await api.get<ExperimentRun>(`${path}/run`, { signal });
  const runs: TraceRun[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page: SharedPage = await api.post(
      `${path}/runs/query`,
      { select: SHARED_FIELDS, order: "asc", cursor },
      { signal },
    );
    for (const { error, tags, ...run } of page.runs)
      runs.push({ ...run, error: error?.split("\n", 1)[0] ?? null, tags: tags ?? [] });
    cursor = page.cursors.next;
  }
  runs.sort((a, b) => (a.dotted_order < b.dotted_order ? -1 : 1));
  // A shared run becomes the root, because its ancestors are not shared.
  const shown = runs.map((run) => (run.id === top.id ? { ...run, parent_run_id: null } : run));
  const version = top.status === "pending" ? String(Date.now()) : "ended";
  return { trace_id: top.id, session_id: top.session_id, status: top.status, version, runs: shown };
}

/** The search stops at this number of matching runs. */
const MAX_FOUND = 1_000;

/** The IDs of the runs of a trace that contain all words, for example in their inputs and outputs, which {@link traceQuery} omits. */
export const traceSearchQuery = ({ trace_id, token }: TraceSource, text: string) =>
  queryOptions({
    queryKey: [...TRACES, "search", trace_id, token, text],
    queryFn: async ({ signal }): Promise<ReadonlySet<string>> => {
      const path =
        token === undefined ? "/api/v1/runs/query" : `/api/v1/public/${encodeURIComponent(token)}/runs/query`;
      const body = {
        filter: `search(${JSON.stringify(text)})`,
        select: ["id"],
        ...(token === undefined && { trace: trace_id }),
      };
      const found = new Set<string>();
      for (let cursor: string | null | undefined; cursor !== null && found.size < MAX_FOUND; ) {
        const page: SharedPage = await api.post(path, { ...body, cursor }, { signal });
        for (const { id } of page.runs) found.add(id);
        cursor = page.cursors.next;
      }
      return found;
    },
    enabled: text !== "",
    staleTime: 5_000,
  });

/** A run with its payloads. `version` is the trace's version, so that a changed trace causes a refetch. */
export const runQuery = ({ token }: TraceSource, id: string, version: string) =>
  queryOptions({
    queryKey: [...TRACES, "run", token, id, version],
    queryFn: ({ signal }) =>
      api.get<ExperimentRun>(
        token === undefined ? `/api/v1/runs/${encodeURIComponent(id)}` : `/api/v1/public/${token}/run/${id}`,
        { signal },
      ),
    staleTime: 60_000,
    // Unused entries are removed early, because payloads can be 20 MB and each version of a trace has its own cache entry.
    gcTime: 10_000,
    placeholderData: keepPreviousData,
  });

export const feedbackKey = (run_id: string) => [...TRACES, "feedback", run_id] as const;

export const feedbackQuery = (run_id: string) =>
  queryOptions({
    queryKey: feedbackKey(run_id),
    queryFn: ({ signal }) => api.get<Feedback[]>("/api/v1/feedback", { query: { run: run_id, limit: 1_000 }, signal }),
  });

export const hasTracesQuery = (session_id: string) =>
  queryOptions({
    queryKey: [...TRACES, "any", session_id],
    queryFn: async ({ signal }) => {
      const { runs } = await api.post<TracesPage>("/app/api/traces/query", { session_id, limit: 1 }, { signal });
      return runs.length > 0;
    },
  });

/** The traced runs with the given IDs, at any level of their traces. Omits uploaded and unknown runs. */
export const tracedRunsQuery = (ids: readonly string[], state = "") =>
  queryOptions({
    queryKey: [...TRACES, "traced", ids, state],
    queryFn: async ({ signal }) => (await api.post<TracesPage>("/app/api/traces/query", { id: ids }, { signal })).runs,
    staleTime: 30_000,
  });
