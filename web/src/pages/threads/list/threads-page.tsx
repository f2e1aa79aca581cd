import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useCallback, useMemo, useState } from "react";
import { agentsUrl } from "../../../api/request.ts";
import { Page } from "../../../frame/header.tsx";
import { useKeys } from "../../../frame/keys.ts";
import { Button } from "../../../ui/button.tsx";
import { count, DASH } from "../../../ui/format.ts";
import { RelativeTime } from "../../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import type { Column } from "../../../ui/table/columns.ts";
import { selectionColumn, toggled } from "../../../ui/table/selection.tsx";
import { Table } from "../../../ui/table/table.tsx";
import { AgentName } from "../../agents/agent-name.tsx";
import { threadsRoute } from "../page.ts";
import { type ListedThread, labelOf, needsInput, threadCountQuery, threadsQuery } from "../queries.ts";
import { isFiltered, type ThreadsSearch } from "../thread-filter.ts";
import { ThreadStatus } from "../thread-header.tsx";
import { ThreadSelection } from "./thread-selection.tsx";
import { ThreadsFilters } from "./threads-filters.tsx";

export function ThreadsPage() {
  const search = threadsRoute.useSearch();
  const navigate = threadsRoute.useNavigate();
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(
    threadsQuery(search),
  );
  const rows = useMemo(() => data?.pages.flat(), [data]);
  const [selected, setSelected] = useState<string>();
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  // Excludes threads that no longer match the filters: only visible threads can be deleted.
  const chosen = useMemo(() => new Set(rows?.map(keyOf).filter((id) => marked.has(id))), [rows, marked]);
  const choose = useCallback((ids: readonly string[]) => setMarked(new Set(ids)), []);
  const columns = useMemo(
    () => [
      selectionColumn({
        chosen,
        choose,
        rows: rows ?? [],
        keyOf,
        nameOf: labelOf,
      }),
      ...COLUMNS,
    ],
    [chosen, choose, rows],
  );
  useKeys({
    n: { does: "New thread", run: () => void navigate({ to: "/threads/new", search: {} }) },
    x: { does: "Select thread", run: () => selected && choose(toggled(chosen, selected)) },
  });
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
      <ThreadsFilters>
        {chosen.size > 0 ? (
          <ThreadSelection chosen={chosen} onClear={() => choose([])} />
        ) : (
          rows && <ThreadCount loaded={rows.length} hasMore={hasNextPage} />
        )}
      </ThreadsFilters>
      {error && <ErrorState error={error} retry={() => void refetch()} />}
      {!error && !rows && <SkeletonRows label="Loading threads" height={56} />}
      {rows && (
        <Table
          name="Threads"
          className="flex-1"
          rowHeight={56}
          rows={rows}
          columns={columns}
          keyOf={keyOf}
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
          empty={<NoThreads isFiltered={isFiltered(search)} />}
        />
      )}
    </Page>
  );
}

const keyOf = ({ thread_id }: ListedThread): string => thread_id;

/** Number of threads that match the filters. */
function ThreadCount({ loaded, hasMore }: { loaded: number; hasMore: boolean }) {
  const search = threadsRoute.useSearch();
  const { data: total } = useQuery({ ...threadCountQuery(search), enabled: hasMore });
  const known = hasMore ? total : loaded;
  if (known === undefined) return null;
  return (
    <output className="ml-auto self-center text-table text-text-2">
      {count(known)} {known === 1 ? "thread" : "threads"}
    </output>
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
      command={`curl -s ${agentsUrl()}/threads -H 'content-type: application/json' -d '{}'`}
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
          className="block truncate font-medium hover:underline"
        >
          {labelOf({ title, thread_id })}
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
    id: "agent",
    header: "Agent",
    cell: ({ metadata: { assistant_id, graph_id } }) => <AgentName assistant_id={assistant_id} graph_id={graph_id} />,
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
