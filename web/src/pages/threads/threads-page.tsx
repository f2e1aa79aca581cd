import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useState } from "react";
import { API_URL } from "../../api/request.ts";
import { Page } from "../../frame/header.tsx";
import { useKeys } from "../../frame/keys.ts";
import { Button } from "../../ui/button.tsx";
import { DASH } from "../../ui/format.ts";
import { classes } from "../../ui/layout.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { Badge } from "../../ui/status.tsx";
import type { Column } from "../../ui/table/columns.ts";
import { Table } from "../../ui/table/table.tsx";
import { threadsRoute } from "./page.ts";
import { type ListedThread, needsInput, threadsQuery } from "./queries.ts";
import type { ThreadsSearch } from "./thread-filter.ts";
import { ThreadStatus } from "./thread-header.tsx";
import { ThreadsFilters } from "./threads-filters.tsx";

export function ThreadsPage() {
  const search = threadsRoute.useSearch();
  const navigate = threadsRoute.useNavigate();
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(
    threadsQuery(search),
  );
  const rows = data?.pages.flat();
  const [selected, setSelected] = useState<string>();
  useKeys({ n: { does: "New thread", run: () => void navigate({ to: "/threads/new", search: {} }) } });
  return (
    <Page
      fill
      title="Threads"
      actions={
        <Button asChild look="primary">
          <Link to="/threads/new" search={{}}>
            <Plus size={15} aria-hidden /> New thread
          </Link>
        </Button>
      }
    >
      <ThreadsFilters />
      {error && <ErrorState error={error} retry={() => void refetch()} />}
      {!error && !rows && <SkeletonRows label="Loading threads" height={56} />}
      {rows && (
        <Table
          name="Threads"
          className="flex-1"
          rowHeight={56}
          rows={rows}
          columns={COLUMNS}
          keyOf={({ thread_id }) => thread_id}
          sort={{ by: search.sort ?? "updated_at", descending: search.order !== "asc" }}
          onSort={({ by, descending }) =>
            void navigate({
              search: (before: ThreadsSearch) => ({
                ...before,
                sort: by === "created_at" ? by : undefined,
                order: descending ? undefined : "asc",
              }),
            })
          }
          selected={selected}
          onSelect={setSelected}
          onOpen={({ thread_id }) => void navigate({ to: "/threads/$thread_id", params: { thread_id }, search: {} })}
          onEnd={() => {
            if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
          }}
          empty={<NoThreads isFiltered={Object.values(search).some((value) => value !== undefined)} />}
        />
      )}
    </Page>
  );
}

const NoThreads = ({ isFiltered }: { isFiltered: boolean }) =>
  isFiltered ? (
    <EmptyState title="No threads match">
      Change the filters or{" "}
      <Link to="/threads" search={{}} className="text-accent-text underline">
        show all threads
      </Link>
      .
    </EmptyState>
  ) : (
    <EmptyState
      title="No threads yet"
      command={`curl -s ${API_URL}/threads -H 'content-type: application/json' -d '{}'`}
      action={
        <Button asChild look="primary">
          <Link to="/threads/new" search={{}}>
            New thread
          </Link>
        </Button>
      }
    >
      A thread stores the state of a conversation across runs.
    </EmptyState>
  );

/** Keys that the service sets and this column omits: other columns show them, or users do not need them. */
const SERVICE_KEYS = ["graph_id", "assistant_id", "user_id"];

/** Formats metadata in the syntax of the metadata filter. */
const metadataText = (metadata: ListedThread["metadata"]): string =>
  Object.entries(metadata)
    .filter(([key]) => !SERVICE_KEYS.includes(key))
    .map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ");

const COLUMNS: Column<ListedThread>[] = [
  {
    id: "title",
    header: "Thread",
    cell: ({ thread_id, title, last }) => (
      <div className="min-w-0">
        <Link
          to="/threads/$thread_id"
          params={{ thread_id }}
          search={{}}
          className={classes("block truncate hover:underline", title ? "font-medium" : "font-mono")}
        >
          {title ?? thread_id}
        </Link>
        <div className="truncate font-normal text-table text-text-3">{last ?? " "}</div>
      </div>
    ),
    width: 440,
    grow: true,
    card: "title",
  },
  {
    id: "status",
    header: "Status",
    cell: (thread) => <ThreadStatus status={thread.status} needsInput={needsInput(thread)} />,
    width: 160,
    card: "first",
  },
  {
    id: "metadata",
    header: "Metadata",
    cell: ({ metadata }) => <span title={metadataText(metadata)}>{metadataText(metadata) || DASH}</span>,
    width: 200,
  },
  {
    id: "graph",
    header: "Graph",
    cell: ({ metadata }) => (metadata.graph_id ? <Badge mono>{String(metadata.graph_id)}</Badge> : DASH),
    width: 150,
  },
  {
    id: "updated",
    header: "Updated",
    sort: "updated_at",
    cell: ({ updated_at }) => <RelativeTime time={updated_at} />,
    width: 130,
  },
  {
    id: "created",
    header: "Created",
    sort: "created_at",
    cell: ({ created_at }) => <RelativeTime time={created_at} />,
    width: 130,
  },
];
