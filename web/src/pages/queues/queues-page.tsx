import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useMemo, useState } from "react";
import type { QueueOverview } from "../../../../src/experiments/contract/annotation-queues/app-queues.ts";
import { Page } from "../../frame/header.tsx";
import { Button } from "../../ui/button.tsx";
import { DebouncedInput } from "../../ui/form/debounced-input.tsx";
import { count } from "../../ui/format.ts";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import type { Column } from "../../ui/table/columns.ts";
import { Table } from "../../ui/table/table.tsx";
import { sortOf, sortText } from "../experiments/routes.ts";
import { CreateQueue } from "./create-queue.tsx";
import { queuesRoute } from "./page.ts";
import { queuesQuery } from "./queries.ts";

const DEFAULT_SORT = "-created_at";

/** Lists the annotation queues with the number of items that the user still has to review. */
export function QueuesPage() {
  const search = queuesRoute.useSearch();
  const navigate = queuesRoute.useNavigate();
  const [isCreating, setCreating] = useState(false);
  const sort = sortOf(search.sort, DEFAULT_SORT);
  const list = useInfiniteQuery(queuesQuery(search.q, sort));
  const queues = useMemo(() => list.data?.pages.flat(), [list.data]);
  return (
    <Page
      title="Annotation queues"
      fill
      actions={
        <Button look="primary" onClick={() => setCreating(true)}>
          <Plus size={15} aria-hidden /> Create queue
        </Button>
      }
    >
      <div className="border-line border-b px-6 py-2 max-sm:px-4">
        <DebouncedInput
          type="search"
          aria-label="Search queues by name"
          placeholder="Search queues"
          className="max-w-72"
          value={search.q}
          onChange={(q) => void navigate({ search: { ...search, q }, replace: true })}
        />
      </div>
      {list.error && !queues ? (
        <ErrorState error={list.error} retry={() => void list.refetch()} />
      ) : queues ? (
        <Table
          name="Annotation queues"
          rows={queues}
          columns={COLUMNS}
          keyOf={({ id }) => id}
          sort={sort}
          onSort={(chosen) => void navigate({ search: { ...search, sort: sortText(chosen, DEFAULT_SORT) } })}
          onOpen={({ id }) => void navigate({ to: "/queues/$id", params: { id } })}
          onEnd={() => list.hasNextPage && !list.isFetchingNextPage && void list.fetchNextPage()}
          className="flex-1"
          empty={search.q ? <EmptyState title={`No queues match “${search.q}”`} /> : <NoQueues />}
        />
      ) : (
        <SkeletonRows label="Loading queues" rows={10} />
      )}
      {isCreating && <CreateQueue onClose={() => setCreating(false)} />}
    </Page>
  );
}

const NoQueues = () => (
  <EmptyState
    title="No annotation queues yet"
    command={[
      "from langsmith import Client",
      "",
      "client = Client()",
      'queue = client.create_annotation_queue(name="Answers to check")',
      "client.add_runs_to_annotation_queue(queue.id, run_ids=[run_id])",
    ].join("\n")}
  >
    A queue contains runs for people to review. Create a queue, then add runs from traces or with the{" "}
    <code>langsmith</code> client.
  </EmptyState>
);

const COLUMNS: Column<QueueOverview>[] = [
  {
    id: "name",
    header: "Queue",
    cell: ({ id, name }) => (
      <Link to="/queues/$id" params={{ id }} className="font-medium hover:underline">
        {name}
      </Link>
    ),
    width: 260,
    grow: true,
    sticky: true,
    sort: "name",
    card: "title",
  },
  {
    id: "left",
    header: "To review",
    cell: ({ items }) => count(items.needs_my_review),
    width: 110,
    numeric: true,
    card: "first",
  },
  {
    id: "total",
    header: "Items",
    cell: ({ items }) => count(items.needs_my_review + items.needs_others_review + items.archived),
    width: 90,
    numeric: true,
    card: "first",
  },
  {
    id: "reviewers",
    header: "Reviewers per item",
    cell: ({ num_reviewers_per_item }) => count(num_reviewers_per_item),
    width: 160,
    numeric: true,
  },
  {
    id: "created",
    header: "Created",
    cell: ({ created_at }) => <RelativeTime time={created_at} />,
    width: 130,
    sort: "created_at",
  },
  {
    id: "description",
    header: "Description",
    cell: ({ description }) => <span className="text-text-2">{description}</span>,
    width: 320,
    grow: true,
    card: "hidden",
  },
];
