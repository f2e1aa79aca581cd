import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import type { PartialThread, Run, Thread, ThreadState } from "../../../../src/agent-server/contract/records.ts";
import { api } from "../../api/request.ts";
import { readMetadata, type ThreadsSearch } from "./thread-filter.ts";
import { ASKED_IN } from "./thread-title.ts";

/** How many threads, steps and runs are fetched at a time. */
const PAGE = { threads: 50, steps: 60, runs: 100 };

/** How often a thread is looked at for runs that others start, in ms. */
const LOOK_MS = 2_500;

/** A thread in a list. */
export type ListedThread = Required<
  Pick<PartialThread, "thread_id" | "status" | "created_at" | "updated_at" | "metadata" | "interrupts">
> & {
  /** What was said first, or asked. */
  title?: string;
  last?: string;
};

const SELECT = ["thread_id", "status", "created_at", "updated_at", "metadata", "interrupts"];
const EXTRACT = {
  first: "values.messages[0].content",
  last: "values.messages[-1].content",
  ...Object.fromEntries(ASKED_IN.map((key) => [key, `values.${key}`])),
};

/** The threads that fit, a page of them. */
export async function findThreads(
  { status, q, metadata, sort, order }: ThreadsSearch,
  page: { limit: number; offset?: number },
  signal?: AbortSignal,
): Promise<ListedThread[]> {
  const body = {
    ...page,
    status,
    text: q,
    metadata: readMetadata(metadata) ?? undefined,
    sort_by: sort ?? "updated_at",
    sort_order: order ?? "desc",
    select: SELECT,
    extract: EXTRACT,
  };
  const found = await api.post<(ListedThread & { extracted: Record<string, unknown> })[]>(
    "/app/api/threads/search",
    body,
    { signal },
  );
  return found.map(({ extracted, ...thread }) => ({
    ...thread,
    title: [extracted.first, ...ASKED_IN.map((key) => extracted[key])].map(lineOf).find((title) => title),
    last: lineOf(extracted.last),
  }));
}

/** The content of a message as one line: text, or the text blocks of a list. */
function lineOf(content: unknown): string | undefined {
  const parts = Array.isArray(content) ? content.map((block) => block?.text) : [content];
  const text = parts.filter((part) => typeof part === "string").join(" ");
  return text.replace(/\s+/g, " ").slice(0, 300) || undefined;
}

export const threadsQuery = (search: ThreadsSearch) =>
  infiniteQueryOptions({
    queryKey: ["threads", search],
    queryFn: ({ signal, pageParam: offset }) => findThreads(search, { limit: PAGE.threads, offset }, signal),
    initialPageParam: 0,
    getNextPageParam: (last, all) => (last.length < PAGE.threads ? undefined : all.length * PAGE.threads),
    refetchInterval: 4 * LOOK_MS,
    placeholderData: (before) => before,
  });

/** All that is known of a thread begins with this, so that it can be renewed at once. */
export const threadKey = (thread_id: string) => ["thread", thread_id];

export const threadQuery = (thread_id: string) =>
  queryOptions({
    queryKey: [...threadKey(thread_id), "record"],
    queryFn: ({ signal }) => api.get<Thread>(`/threads/${thread_id}`, { signal }),
  });

/** @param checkpoint_id the newest state when it is undefined */
export const stateQuery = (thread_id: string, checkpoint_id: string | undefined) =>
  queryOptions({
    queryKey: [...threadKey(thread_id), "state", checkpoint_id],
    queryFn: ({ signal }) =>
      api.get<ThreadState>(`/threads/${thread_id}/state${checkpoint_id ? `/${checkpoint_id}` : ""}`, { signal }),
  });

/** A state without its values, which would be the whole conversation at each step. */
export type StepState = Omit<ThreadState, "values">;

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

/** Newest first. */
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
    // A thread that was deleted is not looked at again.
    refetchInterval: ({ state }) => (state.status === "error" ? false : LOOK_MS),
  });
