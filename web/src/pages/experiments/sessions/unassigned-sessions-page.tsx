import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { Page } from "../../../frame/header.tsx";
import { Input } from "../../../ui/form/field.tsx";
import { RelativeTime } from "../../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import type { Column } from "../../../ui/table/columns.ts";
import { Table } from "../../../ui/table/table.tsx";
import { unassignedSessionsQuery } from "../queries.ts";
import { unassignedSessionsRoute } from "../routes.ts";

/** Lists the experiments that a client created without a dataset. */
export function UnassignedSessionsPage() {
  const { q } = unassignedSessionsRoute.useSearch();
  const navigate = unassignedSessionsRoute.useNavigate();
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } = useInfiniteQuery(
    unassignedSessionsQuery(q),
  );
  const sessions = useMemo(() => data?.pages.flat(), [data]);
  return (
    <Page title="Experiments without a dataset" crumbs={[{ label: "Experiments", to: "/experiments" }]} fill>
      <div className="border-line border-b px-6 py-2 max-sm:px-4">
        <Input
          type="search"
          aria-label="Search experiments by name"
          placeholder="Search experiments"
          className="max-w-72"
          value={q ?? ""}
          onChange={({ target }) => void navigate({ search: { q: target.value || undefined }, replace: true })}
        />
      </div>
      {error ? (
        <ErrorState error={error} retry={() => void refetch()} />
      ) : sessions ? (
        <Table
          name="Experiments without a dataset"
          rows={sessions}
          columns={COLUMNS}
          keyOf={({ id }) => id}
          onOpen={({ id }) => void navigate({ to: "/experiments/sessions/$id", params: { id } })}
          onEnd={() => hasNextPage && !isFetchingNextPage && void fetchNextPage()}
          className="flex-1"
          empty={<EmptyState title={q ? `No experiments match “${q}”` : "All experiments belong to a dataset"} />}
        />
      ) : (
        <SkeletonRows label="Loading experiments" rows={10} />
      )}
    </Page>
  );
}

const COLUMNS: Column<Session>[] = [
  {
    id: "name",
    header: "Experiment",
    cell: ({ id, name }) => (
      <Link to="/experiments/sessions/$id" params={{ id }} className="font-medium hover:underline">
        {name}
      </Link>
    ),
    width: 320,
    grow: true,
    sticky: true,
    card: "title",
  },
  { id: "start", header: "Started", cell: ({ start_time }) => <RelativeTime time={start_time} />, width: 150 },
  {
    id: "description",
    header: "Description",
    cell: ({ description }) => <span className="text-text-2">{description}</span>,
    width: 400,
    grow: true,
  },
];
