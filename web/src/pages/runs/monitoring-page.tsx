import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { AssistantRuns, RunMonitoring } from "../../../../src/agent-server/contract/app-runs.ts";
import type { UsageOverTime } from "../../../../src/experiments/contract/traces/app-traces.ts";
import { useMay } from "../../api/session.ts";
import { Page } from "../../frame/header.tsx";
import { Select } from "../../ui/form/select.tsx";
import { cost, count, DASH, duration, percent } from "../../ui/format.ts";
import { EmptyState, ErrorState, Skeleton } from "../../ui/states.tsx";
import type { Column } from "../../ui/table/columns.ts";
import { Table } from "../../ui/table/table.tsx";
import { assistantsQuery } from "../agents/queries.ts";
import { AssistantFilter, RunsNav, timeLabel } from "./filters.tsx";
import { Charts, runsSearch } from "./monitoring-charts.tsx";
import { DEFAULT_RANGE, type MonitoringSearch, monitoringRoute, RANGES } from "./page.ts";
import { monitoringQuery, usageQuery } from "./queries.ts";

const RANGE_OPTIONS = (Object.keys(RANGES) as (keyof typeof RANGES)[]).map((value) => ({
  value,
  label: RANGES[value],
}));

export function MonitoringPage() {
  const search = monitoringRoute.useSearch();
  const navigate = monitoringRoute.useNavigate();
  const { data, error, refetch } = useQuery(monitoringQuery(search));
  const change = (changed: MonitoringSearch) =>
    void navigate({ search: (before: MonitoringSearch) => ({ ...before, ...changed }), replace: true });
  return (
    <Page title="Monitoring" fill>
      <RunsNav />
      <search className="flex shrink-0 flex-wrap items-center gap-2 px-6 py-2 max-sm:px-4" aria-label="Filters">
        <Select
          aria-label="Time range"
          value={search.range ?? DEFAULT_RANGE}
          options={RANGE_OPTIONS}
          onChange={(range) => change({ range: range === DEFAULT_RANGE ? undefined : range })}
          className="w-40 max-sm:w-[calc(50%-4px)]"
        />
        <AssistantFilter value={search.assistant} onChange={(assistant) => change({ assistant })} />
        {data?.incomplete_until && (
          <p role="status" className="text-table text-text-2">
            Only the 50,000 runs that ended most recently are counted. The numbers are complete only for the time after{" "}
            {timeLabel(data.incomplete_until)}.
          </p>
        )}
      </search>
      {error && !data ? (
        <ErrorState error={error} retry={() => void refetch()} />
      ) : !data ? (
        <div role="status" aria-label="Loading charts" className="grid gap-x-8 gap-y-5 px-6 py-3 lg:grid-cols-2">
          {["runs", "errors", "duration", "queue"].map((chart) => (
            <Skeleton key={chart} className="h-[124px]" />
          ))}
        </div>
      ) : data.total.runs === 0 ? (
        <EmptyState title="No runs ended in this time range">
          The number of runs that ended, and the error rate, durations and queue times of each assistant appear here.
        </EmptyState>
      ) : (
        <Numbers data={data} search={search} />
      )}
    </Page>
  );
}

function Numbers({ data, search }: { data: RunMonitoring; search: MonitoringSearch }) {
  // Users without access to traces see no tokens and costs.
  const enabled = useMay("experiments") === true;
  const { data: usage } = useQuery({ ...usageQuery(data, search.assistant), enabled });
  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      <Charts data={data} usage={usage} assistant={search.assistant} />
      <Assistants data={data} usage={usage} search={search} />
    </div>
  );
}

/** Numbers of an assistant, or of all assistants. */
type Row = Omit<AssistantRuns, "assistant_id"> & { assistant_id: string | undefined };

function Assistants({
  data,
  usage,
  search,
}: {
  data: RunMonitoring;
  usage: UsageOverTime | undefined;
  search: MonitoringSearch;
}) {
  const { data: assistants = [] } = useQuery(assistantsQuery);
  const names = new Map(assistants.map(({ assistant_id, name }) => [assistant_id, name]));
  const isSingle = data.assistants.length === 1;
  const rows: Row[] = [...(isSingle ? [] : [{ assistant_id: undefined, ...data.total }]), ...data.assistants];
  const runsOf = (assistant: string | undefined, status?: "failed") =>
    runsSearch({ ended_from: Date.parse(data.from), ended_until: Date.parse(data.until), assistant, status });
  const usages = new Map(usage?.assistants.map((each) => [each.assistant_id, each]));
  const sum = (id: string, header: string, read: (sums: UsageOverTime["total"]) => string): Column<Row> => ({
    id,
    header,
    width: 100,
    numeric: true,
    cell: ({ assistant_id }) => {
      const own = assistant_id === undefined ? usage?.total : usages.get(assistant_id);
      return own ? read(own) : DASH;
    },
  });
  const columns: Column<Row>[] = [
    {
      id: "assistant",
      header: "Assistant",
      width: 180,
      grow: true,
      card: "title",
      cell: ({ assistant_id }) =>
        assistant_id === undefined ? (
          "All assistants"
        ) : (
          <Link
            to="/runs/monitoring"
            search={{ ...search, assistant: assistant_id }}
            className="rounded font-medium hover:underline"
          >
            {names.get(assistant_id) ?? assistant_id}
          </Link>
        ),
    },
    {
      id: "runs",
      header: "Runs",
      width: 80,
      numeric: true,
      card: "first",
      cell: ({ assistant_id, runs }) => (
        <Link to="/runs" search={runsOf(assistant_id)} className="rounded text-accent-text hover:underline">
          {count(runs)}
        </Link>
      ),
    },
    {
      id: "errors",
      header: "Errors",
      width: 80,
      numeric: true,
      card: "first",
      cell: ({ assistant_id, errors }) =>
        errors === 0 ? (
          0
        ) : (
          <Link to="/runs" search={runsOf(assistant_id, "failed")} className="rounded text-error hover:underline">
            {count(errors)}
          </Link>
        ),
    },
    { id: "rate", header: "Error rate", width: 100, numeric: true, cell: ({ runs, errors }) => percent(errors / runs) },
    time("duration-p50", "Duration p50", ({ duration_p50_ms }) => duration_p50_ms),
    time("duration-p99", "Duration p99", ({ duration_p99_ms }) => duration_p99_ms),
    time("queue-p50", "Queue p50", ({ queue_p50_ms }) => queue_p50_ms),
    time("queue-p99", "Queue p99", ({ queue_p99_ms }) => queue_p99_ms),
    sum("tokens", "Tokens", ({ total_tokens }) => count(total_tokens)),
    sum("cost", "Cost", ({ total_cost }) => cost(total_cost)),
  ];
  return (
    <>
      <Table
        name="Assistants"
        rows={rows}
        columns={columns}
        keyOf={({ assistant_id }) => assistant_id ?? "all"}
        className="mt-3 border-line border-t"
      />
      <p className="px-6 py-3 text-table text-text-3 max-sm:px-4">
        Tokens and costs include only traced runs that ended in this time range.
        {usage?.incomplete_until &&
          ` Only the 50,000 most recently started traces are counted: those that started after ${timeLabel(usage.incomplete_until)}.`}
      </p>
    </>
  );
}

const time = (id: string, header: string, read: (row: Row) => number | null): Column<Row> => ({
  id,
  header,
  width: 112,
  numeric: true,
  cell: (row) => duration(read(row)),
});
