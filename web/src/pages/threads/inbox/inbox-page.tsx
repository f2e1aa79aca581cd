import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useRef } from "react";
import { Page } from "../../../frame/header.tsx";
import { count } from "../../../ui/format.ts";
import { isNarrow, useMedia } from "../../../ui/layout.tsx";
import { RelativeTime } from "../../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import type { Column } from "../../../ui/table/columns.ts";
import { Table } from "../../../ui/table/table.tsx";
import { inboxRoute, WAITING } from "../page.ts";
import { type ListedThread, labelOf, threadsQuery } from "../queries.ts";
import { InboxThread } from "./inbox-thread.tsx";
import { questionText } from "./question-text.ts";
import { QueuesToReview } from "./queues-to-review.tsx";

/** All threads that wait for a person, with the selected thread beside them, and the queues with items to review. */
export function InboxPage() {
  const { thread } = inboxRoute.useSearch();
  const navigate = inboxRoute.useNavigate();
  const narrow = useMedia(isNarrow);
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(
    threadsQuery(WAITING),
  );
  const rows = useMemo(() => data?.pages.flat(), [data]);
  // After an answer, the thread leaves the list and the next thread takes its place.
  const last = useRef(0);
  const at = rows?.findIndex(({ thread_id }) => thread_id === thread) ?? -1;
  if (at >= 0) last.current = at;
  const selected = rows?.[at >= 0 ? at : Math.min(last.current, rows.length - 1)];
  const open = ({ thread_id }: ListedThread) =>
    narrow
      ? void navigate({ to: "/threads/$thread_id", params: { thread_id }, search: {} })
      : void navigate({ search: { thread: thread_id }, replace: true });
  return (
    <Page fill title="Inbox">
      <QueuesToReview />
      {error && !rows ? (
        <ErrorState error={error} retry={() => void refetch()} />
      ) : !rows ? (
        <SkeletonRows label="Loading threads" height={56} />
      ) : !selected ? (
        <EmptyState title="Nothing needs your input">
          Threads that wait for an approval or an answer, and paused threads, are listed here with their question.
        </EmptyState>
      ) : (
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
          {!narrow && (
            <InboxThread key={selected.thread_id} thread={selected} position={positionText(rows, selected)} />
          )}
        </div>
      )}
    </Page>
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
