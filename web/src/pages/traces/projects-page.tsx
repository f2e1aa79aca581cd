import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Session } from "../../../../src/experiments/contract/sessions.ts";
import { API_URL } from "../../api/request.ts";
import { Page } from "../../frame/header.tsx";
import { DebouncedInput } from "../../ui/form/debounced-input.tsx";
import { cost, count, percent, seconds } from "../../ui/format.ts";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import type { Column } from "../../ui/table/columns.ts";
import { Table } from "../../ui/table/table.tsx";
import { sortOf, sortText } from "../experiments/routes.ts";
import { projectsRoute } from "./page.ts";
import { projectsQuery } from "./queries.ts";

const DEFAULT_SORT = "-last_run_start_time";

/** Lists the projects with their statistics. */
export function ProjectsPage() {
  const search = projectsRoute.useSearch();
  const navigate = projectsRoute.useNavigate();
  const sort = sortOf(search.sort, DEFAULT_SORT);
  const list = useInfiniteQuery(projectsQuery(search.q, sort));
  const projects = useMemo(() => list.data?.pages.flat(), [list.data]);
  return (
    <Page title="Traces" fill>
      <div className="border-line border-b px-6 py-2 max-sm:px-4">
        <DebouncedInput
          type="search"
          aria-label="Search projects by name"
          placeholder="Search projects"
          className="max-w-72"
          value={search.q}
          onChange={(q) => void navigate({ search: { ...search, q }, replace: true })}
        />
      </div>
      {list.error && !projects ? (
        <ErrorState error={list.error} retry={() => void list.refetch()} />
      ) : projects ? (
        <Table
          name="Projects"
          rows={projects}
          columns={COLUMNS}
          keyOf={({ id }) => id}
          sort={sort}
          onSort={(chosen) => void navigate({ search: { ...search, sort: sortText(chosen, DEFAULT_SORT) } })}
          onOpen={({ id }) => void navigate({ to: "/traces/projects/$id", params: { id } })}
          onEnd={() => list.hasNextPage && !list.isFetchingNextPage && void list.fetchNextPage()}
          className="flex-1"
          empty={search.q ? <EmptyState title={`No projects match “${search.q}”`} /> : <NoTraces />}
        />
      ) : (
        <SkeletonRows label="Loading projects" rows={10} />
      )}
    </Page>
  );
}

/** Shows how to send the first trace. */
export const NoTraces = ({ project }: { project?: string }) => (
  <EmptyState
    title="No traces yet"
    command={[
      "export LANGSMITH_TRACING=true",
      `export LANGSMITH_ENDPOINT=${API_URL}/api/v1`,
      ...(project === undefined ? [] : [`export LANGSMITH_PROJECT=${JSON.stringify(project)}`]),
    ].join("\n")}
  >
    Set these variables and run a program that uses the <code>langsmith</code> client, LangChain or LangGraph. If this
    server requires a key, also set <code>LANGSMITH_API_KEY</code>. OpenTelemetry exporters send to{" "}
    <code>{API_URL}/otel</code>.
  </EmptyState>
);

const COLUMNS: Column<Session>[] = [
  {
    id: "name",
    header: "Project",
    cell: ({ id, name }) => (
      <Link to="/traces/projects/$id" params={{ id }} className="font-medium hover:underline">
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
    id: "traces",
    header: "Traces",
    cell: ({ run_count }) => count(run_count),
    width: 100,
    numeric: true,
    sort: "runs_count",
    card: "first",
  },
  {
    id: "errors",
    header: "Errors",
    cell: ({ error_rate }) => <span className={error_rate ? "text-error" : undefined}>{percent(error_rate)}</span>,
    width: 90,
    numeric: true,
    sort: "error_rate",
    card: "first",
  },
  {
    id: "p50",
    header: "Latency p50",
    cell: ({ latency_p50 }) => seconds(latency_p50),
    width: 120,
    numeric: true,
    sort: "latency_p50",
  },
  {
    id: "p99",
    header: "Latency p99",
    cell: ({ latency_p99 }) => seconds(latency_p99),
    width: 120,
    numeric: true,
    sort: "latency_p99",
  },
  { id: "tokens", header: "Tokens", cell: ({ total_tokens }) => count(total_tokens), width: 110, numeric: true },
  { id: "cost", header: "Cost", cell: ({ total_cost }) => cost(total_cost), width: 100, numeric: true },
  {
    id: "last",
    header: "Last trace",
    cell: ({ last_run_start_time }) => <RelativeTime time={last_run_start_time} />,
    width: 130,
    sort: "last_run_start_time",
  },
];
