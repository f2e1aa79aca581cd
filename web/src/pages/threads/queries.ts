import type { QueryClient } from "@tanstack/react-query";
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import type { PartialThread, Run, Thread, ThreadState } from "../../../../src/agent-server/contract/records.ts";
import { api, RequestError } from "../../api/request.ts";
import { target } from "../../api/target.ts";
import { messagesOf, nameOf, TITLE_KEYS } from "./conversation/messages.ts";
import type { StepState } from "./side/steps.ts";
import { parseMetadata, type ThreadsSearch } from "./thread-filter.ts";

const PAGE = { threads: 50, steps: 60, runs: 100 };

/** Number of threads in one request to delete threads, which limits the time between two steps of the progress. */
const DELETED_AT_ONCE = 50;

/** Poll interval of the list of threads. */
const LIST_POLL_MS = 10_000;
/** Poll interval of a thread's runs, for a service whose event stream cannot be read. */
const RUNS_POLL_MS = 15_000;

export type ListedThread = Required<
  Pick<PartialThread, "thread_id" | "status" | "created_at" | "updated_at" | "metadata" | "interrupts">
> & {
  /** Name in the metadata, first message or question, as one line. */
  title?: string;
  last?: string;
  /** Error of the last run, in lists of failed threads. */
  error?: { error: string; message: string } | null;
};

const SELECT = ["thread_id", "status", "created_at", "updated_at", "metadata", "interrupts"];
const EXTRACT = {
  first: "values.messages[0].content",
  last: "values.messages[-1].content",
  ...Object.fromEntries(TITLE_KEYS.map((key) => [key, `values.${key}`])),
};

/** Metadata of the threads that experiments of the page keep. The lists leave them out, because there is one for each example. */
export const OF_EXPERIMENT = { kept_for: "experiment" };

/** What lists call a thread: its title, or the start of its ID while it has no messages. */
export const labelOf = ({ title, thread_id }: Pick<ListedThread, "title" | "thread_id">): string =>
  title ?? `Thread ${thread_id.slice(0, 8)}`;

/** The filters of a search and of a count. Deployments serve the public routes only, which ignore `text` and `exclude_metadata`. */
const filterOf = ({ status, q, metadata, experiments }: ThreadsSearch) => ({
  status,
  text: q,
  metadata: parseMetadata(metadata) ?? undefined,
  exclude_metadata: experiments || target() !== undefined ? undefined : OF_EXPERIMENT,
});

/** Searches threads and returns one page. */
export async function findThreads(
  search: ThreadsSearch,
  page: { limit: number; offset?: number },
  signal?: AbortSignal,
): Promise<ListedThread[]> {
  const { status, q, sort, order } = search;
  const body = {
    ...page,
    ...filterOf(search),
    sort_by: sort ?? "updated_at",
    sort_order: order ?? "desc",
    select: status === "error" ? [...SELECT, "error"] : SELECT,
    extract: EXTRACT,
  };
  // Deployments serve the public search only, which has no filter for text.
  if (q && target() !== undefined) return [];
  const found = await api.post<(ListedThread & { extracted: Record<string, unknown> })[]>(
    target() === undefined ? "/app/api/threads/search" : "/threads/search",
    body,
    { signal },
  );
  return found.map(({ extracted, ...thread }) => ({
    ...thread,
    title:
      nameOf(thread.metadata) ??
      [extracted.first, ...TITLE_KEYS.map((key) => extracted[key])].map(singleLine).find((title) => title),
    last: singleLine(extracted.last),
  }));
}

/** Whether an interrupt waits for a person. A run that was cancelled is interrupted, too. */
export const needsInput = ({ status, interrupts }: Pick<ListedThread, "status" | "interrupts">): boolean =>
  status === "interrupted" && Object.values(interrupts).some((each) => each.length > 0);

/** Formats a message's content (a string, or a list with text blocks) as one line. */
function singleLine(content: unknown): string | undefined {
  const parts = Array.isArray(content) ? content.map((block) => block?.text) : [content];
  const text = parts.filter((part) => typeof part === "string").join(" ");
  return text.replace(/\s+/g, " ").slice(0, 300) || undefined;
}

/** Key prefix of the queries whose results change with the threads of the workspace. */
export const threadsKey = ["threads"] as const;

export const threadsQuery = (search: ThreadsSearch) =>
  infiniteQueryOptions({
    queryKey: [...threadsKey, "list", search],
    queryFn: ({ signal, pageParam: offset }) => findThreads(search, { limit: PAGE.threads, offset }, signal),
    initialPageParam: 0,
    getNextPageParam: (last, all) => (last.length < PAGE.threads ? undefined : all.length * PAGE.threads),
    refetchInterval: LIST_POLL_MS,
    placeholderData: (before) => before,
  });

/** Number of threads that match the filters. */
export const threadCountQuery = (search: ThreadsSearch) =>
  queryOptions({
    queryKey: [...threadsKey, "count", filterOf(search)],
    queryFn: ({ signal }) =>
      api.post<number>(target() === undefined ? "/app/api/threads/count" : "/threads/count", filterOf(search), {
        signal,
      }),
    refetchInterval: LIST_POLL_MS,
    placeholderData: (before) => before,
  });

interface DeletionOptions {
  /** Called with the number of threads that have been processed. */
  onProgress?(done: number): void;
  /** Stops before the next batch. */
  signal: AbortSignal;
}

/**
 * Deletes threads and stops their active runs.
 *
 * @returns the number of deleted threads, which excludes threads that no longer exist
 */
export async function deleteThreads(
  client: QueryClient,
  thread_ids: readonly string[],
  { onProgress, signal }: DeletionOptions,
): Promise<number> {
  let deleted = 0;
  try {
    for (let done = 0; done < thread_ids.length && !signal.aborted; ) {
      const batch = thread_ids.slice(done, done + DELETED_AT_ONCE);
      const { pruned_count } = await api.post<{ pruned_count: number }>("/threads/prune", { thread_ids: batch });
      for (const thread_id of batch) client.removeQueries({ queryKey: threadKey(thread_id) });
      deleted += pruned_count;
      done += batch.length;
      onProgress?.(done);
    }
  } finally {
    // Also refetches after an error, because earlier batches have been deleted.
    await client.invalidateQueries({ queryKey: threadsKey });
  }
  return deleted;
}

/** Key prefix of all queries of a thread, for invalidation. */
export const threadKey = (thread_id: string) => ["thread", thread_id];

export const threadQuery = (thread_id: string) =>
  queryOptions({
    queryKey: [...threadKey(thread_id), "record"],
    queryFn: ({ signal }) => api.get<Thread>(`/threads/${thread_id}`, { signal }),
  });

/** Whether a thread exists, asked by a search, because a request for a deleted thread fails. */
export const threadExistsQuery = (thread_id: string) =>
  queryOptions({
    queryKey: [...threadKey(thread_id), "exists"],
    queryFn: async ({ signal }) => {
      const body = { ids: [thread_id], limit: 1, select: ["thread_id"] };
      return (await api.post<unknown[]>("/threads/search", body, { signal })).length > 0;
    },
    staleTime: 30_000,
  });

/** @param checkpoint_id undefined for the newest state */
export const stateQuery = (thread_id: string, checkpoint_id: string | undefined) =>
  queryOptions({
    queryKey: [...threadKey(thread_id), "state", checkpoint_id],
    queryFn: ({ signal }) =>
      api.get<ThreadState>(`/threads/${thread_id}/state${checkpoint_id ? `/${checkpoint_id}` : ""}`, { signal }),
  });

/** Number of messages at a checkpoint, which never changes. 0 without a checkpoint. */
export const messageCountQuery = (thread_id: string, checkpoint_id: string | undefined) =>
  queryOptions({
    queryKey: ["message count", thread_id, checkpoint_id],
    queryFn: async ({ signal }) => {
      if (!checkpoint_id) return 0;
      const { values } = await api.get<ThreadState>(`/threads/${thread_id}/state/${checkpoint_id}`, { signal });
      return messagesOf(values)?.length ?? 0;
    },
    staleTime: Number.POSITIVE_INFINITY,
  });

export const historyQuery = (thread_id: string) =>
  infiniteQueryOptions({
    queryKey: [...threadKey(thread_id), "history"],
    queryFn: ({ signal, pageParam: before }) =>
      api.post<StepState[]>(
        `/threads/${thread_id}/history`,
        {
          limit: PAGE.steps,
          before,
          select: ["next", "tasks", "metadata", "created_at", "checkpoint", "parent_checkpoint"],
        },
        { signal },
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) =>
      last.length < PAGE.steps ? undefined : (last.at(-1)?.checkpoint?.checkpoint_id ?? undefined),
  });

/** Whether the thread was deleted. */
const isDeleted = (error: unknown): boolean => error instanceof RequestError && error.status === 404;

/** Runs of a thread, newest first. */
export const runsQuery = (thread_id: string) =>
  queryOptions({
    queryKey: [...threadKey(thread_id), "runs"],
    queryFn: ({ signal }) =>
      api.get<Run[]>(`/threads/${thread_id}/runs`, {
        query: {
          limit: PAGE.runs,
          select: ["run_id", "assistant_id", "created_at", "updated_at", "status", "metadata", "cancel_reason"],
        },
        signal,
      }),
    refetchInterval: ({ state }) => (isDeleted(state.error) ? false : RUNS_POLL_MS),
  });

/** Request to start a run, with either an input or a command. */
export interface RunRequest {
  assistant_id: string;
  input?: unknown;
  command?: { resume: unknown };
  /** ID of the checkpoint to start from. Default: the newest checkpoint. */
  checkpoint_id?: string;
  /** Nodes before which the run pauses. */
  interrupt_before?: readonly string[];
}

/** Options for streaming the events that the thread page shows: tokens, the state after each step, running nodes and custom events. */
const STREAM_OPTIONS = { stream_mode: ["values", "messages-tuple", "tasks", "custom"], stream_subgraphs: true };

/** Starts a run and adds the run to the cached list, so that the thread page follows the run. */
export async function startRun(client: QueryClient, thread_id: string, request: RunRequest): Promise<Run> {
  const run = await api.post<Run>(`/threads/${thread_id}/runs`, { ...STREAM_OPTIONS, ...request });
  const { queryKey } = runsQuery(thread_id);
  // Cancels requests in flight, because their responses would not contain the new run.
  await client.cancelQueries({ queryKey });
  client.setQueryData(queryKey, (runs: Run[] = []) => [run, ...runs.filter(({ run_id }) => run_id !== run.run_id)]);
  return run;
}
