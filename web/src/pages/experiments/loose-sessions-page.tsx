import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Session } from "../../../../src/experiments/contract/sessions.ts";
import { Page } from "../../frame/header.tsx";
import { Input } from "../../ui/field.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { Table } from "../../ui/table.tsx";
import type { Column } from "../../ui/table-columns.ts";
import { looseSessionsQuery } from "./queries.ts";
import { looseSessionsRoute } from "./routes.ts";

/** Experiments that a client has made and that belong to no dataset, which is where all others are found. */
export function LooseSessionsPage() {
  const { q } = looseSessionsRoute.useSearch();
  const navigate = looseSessionsRoute.useNavigate();
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } = useInfiniteQuery(
    looseSessionsQuery(q),
  );
  const sessions = useMemo(() => data?.pages.flat(), [data]);
  return (
    <Page title="Without a dataset" crumbs={[{ label: "Experiments", to: "/experiments" }]} fill>
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
          empty={<EmptyState title={q ? `None has “${q}” in its name` : "All experiments belong to a dataset"} />}
        />
      ) : (
        <SkeletonRows label="Fetching the experiments" rows={10} />
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
