import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import type { QueueOverview } from "../../../../src/experiments/contract/annotation-queues/app-queues.ts";
import type { QueueRun } from "../../../../src/experiments/contract/annotation-queues/items.ts";
import type { AnnotationQueue, QueueQuery } from "../../../../src/experiments/contract/annotation-queues/queues.ts";
import { api, RequestError } from "../../api/request.ts";
import type { Sort } from "../../ui/table/columns.ts";

/** Key prefix of all queries whose results depend on queues or their items. */
export const QUEUES = ["queues"] as const;
const PAGE = 100;

export const findQueues = (query: Partial<QueueQuery>, signal: AbortSignal) =>
  api.get<AnnotationQueue[]>("/api/v1/annotation-queues", { query, signal });

const readOverviews = (query: Partial<QueueQuery>, signal: AbortSignal) =>
  api.get<QueueOverview[]>("/app/api/annotation-queues", { query, signal });

export const queuesQuery = (name_contains: string | undefined, { by, descending }: Sort) =>
  infiniteQueryOptions({
    queryKey: [...QUEUES, "list", name_contains, by, descending],
    queryFn: ({ pageParam, signal }) => {
      const sort_by = by as QueueQuery["sort_by"];
      return readOverviews(
        { name_contains, sort_by, sort_by_desc: descending, limit: PAGE, offset: pageParam },
        signal,
      );
    },
    initialPageParam: 0,
    getNextPageParam: (last, pages) => (last.length < PAGE ? undefined : pages.length * PAGE),
    placeholderData: keepPreviousData,
  });

export const queueQuery = (id: string) =>
  queryOptions({
    queryKey: [...QUEUES, "queue", id],
    queryFn: async ({ signal }) => {
      const [queue] = await readOverviews({ ids: [id] }, signal);
      if (!queue) throw new RequestError(404, "Annotation queue not found");
      return queue;
    },
  });

/** The first item to review after the skipped items. Null if no item is left. */
export const itemQuery = (queue_id: string, skip: number) =>
  queryOptions({
    queryKey: [...QUEUES, "item", queue_id, skip],
    queryFn: async ({ signal }) => {
      const path = `/api/v1/annotation-queues/${encodeURIComponent(queue_id)}/runs`;
      const query = { status: "needs_my_review", limit: 1, offset: skip };
      return (await api.get<QueueRun[]>(path, { query, signal }))[0] ?? null;
    },
    // A payload can be 20 MB, so unused items are removed from the cache early.
    gcTime: 10_000,
  });
