import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { AssistantRuns, RunMonitoring } from "../../../../src/agent-server/contract/app-runs.ts";
import type { RunStats } from "../../../../src/experiments/contract/runs.ts";
import { useMay } from "../../api/session.ts";
import { Page } from "../../frame/header.tsx";
import { Select } from "../../ui/form/select.tsx";
import { cost, count, DASH, duration, percent } from "../../ui/format.ts";
import { EmptyState, ErrorState, Skeleton } from "../../ui/states.tsx";
import type { Column } from "../../ui/table/columns.ts";
import { Table } from "../../ui/table/table.tsx";
import { assistantsQuery } from "../agents/queries.ts";
import { AssistantFilter, clock, RunsNav, timeLabel } from "./filters.tsx";
import { DEFAULT_RANGE, type MonitoringSearch, monitoringRoute, RANGES, type RunsSearch } from "./page.ts";
import { monitoringQuery, usageQuery } from "./queries.ts";
import { type Series, SeriesChart } from "./series-chart.tsx";

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
            Only the 50,000 runs that ended last are counted. The numbers are complete after{" "}
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
        <EmptyState title="No runs ended in this time">
          The numbers of ended runs, their error rates, durations and queue times appear here, for each assistant.
        </EmptyState>
      ) : (
        <div className="min-h-0 flex-1 overflow-y-auto">
          <Charts data={data} assistant={search.assistant} />
          <Assistants data={data} search={search} />
        </div>
      )}
    </Page>
  );
}

/** Shorter buckets belong to ranges of a few hours, whose times need no date. */
const MIN_DATED_MS = 600_000;

type Bucket = RunMonitoring["total"]["buckets"][number];

function Charts({ data, assistant }: { data: RunMonitoring; assistant: string | undefined }) {
  const navigate = monitoringRoute.useNavigate();
  const { starts, buckets } = bucketsOf(data);
  const labelOf = data.bucket_ms < MIN_DATED_MS ? clock : timeLabel;
  const times = starts.map((at) => labelOf(new Date(at).toISOString()));
  const series = (label: string, color: string, read: (bucket: Bucket) => number | null, filled = false): Series => ({
    label,
    color,
    filled,
    values: buckets.map((bucket) => bucket && read(bucket)),
  });
  const counts = (each: Series): Series => ({ ...each, values: each.values.map((value) => value ?? 0) });
  const open = (status?: "failed") => (index: number) => {
    const from = starts[index] as number;
    const ended = { ended_from: from, ended_until: from + data.bucket_ms };
    void navigate({ to: "/runs", search: runsSearch({ ...ended, assistant, status }) });
  };
  return (
    <section aria-label="Charts" className="grid gap-x-8 gap-y-5 px-6 py-3 max-sm:px-4 lg:grid-cols-2">
      <SeriesChart
        title="Ended runs"
        times={times}
        series={[
          counts(series("runs", "text-better", ({ runs }) => runs, true)),
          counts(series("errors", "text-error", ({ errors }) => errors)),
        ]}
        onOpen={open()}
      />
      <SeriesChart
        title="Error rate"
        unit="share"
        times={times}
        series={[series("errors", "text-error", ({ runs, errors }) => errors / runs, true)]}
        onOpen={open("failed")}
      />
      <SeriesChart
        title="Duration"
        unit="ms"
        times={times}
        series={[
          series("p50", "text-better", ({ duration_p50_ms }) => duration_p50_ms, true),
          series("p99", "text-worse", ({ duration_p99_ms }) => duration_p99_ms),
        ]}
        onOpen={open()}
      />
      <SeriesChart
        title="Queue time"
        unit="ms"
        times={times}
        series={[
          series("p50", "text-better", ({ queue_p50_ms }) => queue_p50_ms, true),
          series("p99", "text-worse", ({ queue_p99_ms }) => queue_p99_ms),
        ]}
        onOpen={open()}
      />
    </section>
  );
}

/** The starts of all buckets, in ms since the epoch, and the buckets. A bucket without runs is null. */
function bucketsOf({ from, until, bucket_ms, total }: RunMonitoring) {
  const first = Date.parse(from);
  const starts = Array.from({ length: (Date.parse(until) - first) / bucket_ms }, (_, i) => first + i * bucket_ms);
  const known = new Map(total.buckets.map((bucket) => [Date.parse(bucket.at), bucket]));
  return { starts, buckets: starts.map((at) => known.get(at) ?? null) };
}

type EndedSearch = Pick<RunsSearch, "assistant" | "status"> & { ended_from: number; ended_until: number };

const runsSearch = ({ ended_from, ended_until, ...search }: EndedSearch): RunsSearch => ({
  ...search,
  ended_from: new Date(ended_from).toISOString(),
  ended_until: new Date(ended_until).toISOString(),
});

/** Each needs a query that reads the metadata of all traces in the time range: 100 ms for 20,000 traces. */
const MAX_USAGES = 10;

/** Numbers of an assistant, or of all assistants. */
type Row = Omit<AssistantRuns, "assistant_id"> & { assistant_id: string | undefined };

function Assistants({ data, search }: { data: RunMonitoring; search: MonitoringSearch }) {
  const { data: assistants = [] } = useQuery(assistantsQuery);
  const names = new Map(assistants.map(({ assistant_id, name }) => [assistant_id, name]));
  const isSingle = data.assistants.length === 1;
  const rows: Row[] = [...(isSingle ? [] : [{ assistant_id: undefined, ...data.total }]), ...data.assistants];
  const runsOf = (assistant: string | undefined, status?: "failed") =>
    runsSearch({ ended_from: Date.parse(data.from), ended_until: Date.parse(data.until), assistant, status });
  const usage = (id: string, header: string, read: (stats: RunStats) => string): Column<Row> => ({
    id,
    header,
    width: 100,
    numeric: true,
    cell: ({ assistant_id }, index) =>
      assistant_id === undefined || index > MAX_USAGES ? DASH : <Usage {...{ assistant_id, from: data.from, read }} />,
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
    usage("tokens", "Tokens", ({ total_tokens }) => count(total_tokens)),
    usage("cost", "Cost", ({ total_cost }) => cost(total_cost)),
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
        Tokens and costs are those of traced runs that started in this time, of the {MAX_USAGES} assistants with the
        most runs.
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

/** Tokens or cost of an assistant. A dash if the user has no access to traces. */
function Usage(props: { assistant_id: string; from: string; read(stats: RunStats): string }) {
  const enabled = useMay("experiments") === true;
  const { data } = useQuery({ ...usageQuery(props.assistant_id, props.from), enabled });
  return data ? props.read(data) : DASH;
}
