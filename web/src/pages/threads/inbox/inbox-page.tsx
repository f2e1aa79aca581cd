import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useRef } from "react";
import { useMay } from "../../../api/session.ts";
import { Page } from "../../../frame/header.tsx";
import { count } from "../../../ui/format.ts";
import { isNarrow, useMedia } from "../../../ui/layout.tsx";
import { RelativeTime } from "../../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import type { Column } from "../../../ui/table/columns.ts";
import { Table } from "../../../ui/table/table.tsx";
import { Tabs } from "../../../ui/tabs.tsx";
import { queuesQuery } from "../../queues/queries.ts";
import { QueueItems } from "../../queues/queue-items.tsx";
import { inboxRoute, WAITING } from "../page.ts";
import { type ListedThread, labelOf, threadsQuery } from "../queries.ts";
import { InboxThread } from "./inbox-thread.tsx";
import { questionText } from "./question-text.ts";

/** What waits for the user: threads, and the items of annotation queues, a tab for each queue. */
export function InboxPage() {
  const { queue, skip = 0 } = inboxRoute.useSearch();
  const navigate = inboxRoute.useNavigate();
  const queues = useQueuesToReview(queue);
  return (
    <Page fill title="Inbox">
      {queues.length === 0 ? (
        <WaitingThreads />
      ) : (
        <Tabs
          fill
          label="Inbox"
          value={queue ?? THREADS}
          onChange={(chosen) => void navigate({ search: { queue: chosen === THREADS ? undefined : chosen } })}
          tabs={[
            { value: THREADS, label: "Threads", content: <WaitingThreads /> },
            ...queues.map(({ id, label }) => ({
              value: id,
              label: <span className="inline-block max-w-60 truncate align-bottom">{label}</span>,
              content: (
                <QueueItems
                  id={id}
                  skip={skip}
                  onSkipTo={(skipped) => void navigate({ search: { queue: id, skip: skipped || undefined } })}
                />
              ),
            })),
          ]}
        />
      )}
    </Page>
  );
}

const THREADS = "threads";

/** The annotation queues with items that the user still has to review, and the open one. */
function useQueuesToReview(open: string | undefined): { id: string; label: string }[] {
  const may = useMay("experiments") === true;
  const { data } = useInfiniteQuery({ ...queuesQuery(undefined, { by: "name", descending: false }), enabled: may });
  const queues = (data?.pages.flat() ?? [])
    .filter(({ id, items }) => id === open || items.needs_my_review > 0)
    .map(({ id, name, items }) => ({ id, label: `${name} (${count(items.needs_my_review)})` }));
  // The list is still loading, or the queue was deleted: then the tab says so.
  return open === undefined || queues.some(({ id }) => id === open)
    ? queues
    : [...queues, { id: open, label: "Annotation queue" }];
}

/** All threads that wait for a person, with the selected thread beside them. */
function WaitingThreads() {
  const { thread } = inboxRoute.useSearch();
  const navigate = inboxRoute.useNavigate();
  const narrow = useMedia(isNarrow);
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(
    threadsQuery(WAITING),
  );
  const rows = useMemo(() => data?.pages.flat(), [data]);
  // By ID, because a new thread comes first in the list. After an answer, the thread leaves the list and the next one takes its place.
  const last = useRef<{ id?: string | undefined; at: number; thread?: string | undefined }>({ at: 0 });
  const indexOf = (id: string | undefined) => rows?.findIndex(({ thread_id }) => thread_id === id) ?? -1;
  // The URL can name a thread that has left the list and asks again.
  const wanted = thread === last.current.thread ? [last.current.id, thread] : [thread, last.current.id];
  const at = wanted.map(indexOf).find((index) => index >= 0) ?? last.current.at;
  const selected = rows?.[Math.min(at, rows.length - 1)];
  if (selected) last.current = { id: selected.thread_id, at, thread };
  const open = ({ thread_id }: ListedThread) =>
    narrow
      ? void navigate({ to: "/threads/$thread_id", params: { thread_id }, search: {} })
      : void navigate({ search: { thread: thread_id }, replace: true });
  if (error && !rows) return <ErrorState error={error} retry={() => void refetch()} />;
  if (!rows) return <SkeletonRows label="Loading threads" height={56} />;
  if (!selected)
    return (
      <EmptyState title="Nothing needs your input">
        Threads that are waiting for approval or an answer, or are paused at a breakpoint, appear here.
      </EmptyState>
    );
  return (
    <div className="flex min-h-0 flex-1">
      <Table
        name="Inbox"
        className="w-96 shrink-0 border-line border-r max-sm:w-full max-sm:border-r-0"
        rowHeight={56}
        rows={rows}
        columns={narrow ? CARDS : COLUMNS}
        keyOf={({ thread_id }) => thread_id}
        selected={narrow ? undefined : selected.thread_id}
        onSelect={(_, row) => open(row)}
        onOpen={open}
        onEnd={() => {
          if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
        }}
      />
      {!narrow && <InboxThread key={selected.thread_id} thread={selected} position={positionText(rows, selected)} />}
    </div>
  );
}

const positionText = (rows: readonly ListedThread[], row: ListedThread): string =>
  `${count(rows.indexOf(row) + 1)} of ${count(rows.length)}`;

const columnsOf = (narrow: boolean): Column<ListedThread>[] => [
  {
    id: "title",
    header: "Thread",
    cell: (thread) => (
      <div className="min-w-0">
        <Link
          {...(narrow
            ? { to: "/threads/$thread_id", params: { thread_id: thread.thread_id }, search: {} }
            : { to: "/inbox", search: { thread: thread.thread_id }, replace: true })}
          className="block truncate font-medium hover:underline"
        >
          {labelOf(thread)}
        </Link>
        <div className="truncate font-normal text-table text-text-2">{questionText(thread)}</div>
      </div>
    ),
    width: 260,
    grow: true,
    card: "title",
  },
  { id: "updated", header: "Updated", cell: ({ updated_at }) => <RelativeTime time={updated_at} />, width: 104 },
];

const COLUMNS = columnsOf(false);
const CARDS = columnsOf(true);
