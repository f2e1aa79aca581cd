import type { RunMonitoring } from "../../../../src/agent-server/contract/app-runs.ts";
import type { UsageOverTime } from "../../../../src/experiments/contract/traces/app-traces.ts";
import { clock, timeLabel } from "./filters.tsx";
import { monitoringRoute, type RunsSearch } from "./page.ts";
import { type Series, SeriesChart } from "./series-chart.tsx";

/** Shorter buckets belong to ranges of a few hours, whose times need no date. */
const MIN_DATED_MS = 600_000;

type Bucket = RunMonitoring["total"]["buckets"][number];
type UsageBucket = UsageOverTime["buckets"][number];

export function Charts({
  data,
  usage,
  assistant,
}: {
  data: RunMonitoring;
  usage: UsageOverTime | undefined;
  assistant: string | undefined;
}) {
  const navigate = monitoringRoute.useNavigate();
  const first = Date.parse(data.from);
  const length = (Date.parse(data.until) - first) / data.bucket_ms;
  const starts = Array.from({ length }, (_, i) => first + i * data.bucket_ms);
  const buckets = atEach(starts, data.total.buckets);
  const usages = usage && usage.buckets.length > 0 ? atEach(starts, usage.buckets) : undefined;
  const labelOf = data.bucket_ms < MIN_DATED_MS ? clock : timeLabel;
  const times = starts.map((at) => labelOf(new Date(at).toISOString()));
  const series = (label: string, color: string, read: (bucket: Bucket) => number | null, filled = false): Series => ({
    label,
    color,
    filled,
    values: buckets.map((bucket) => bucket && read(bucket)),
  });
  const sums = (
    label: string,
    color: string,
    read: (bucket: UsageBucket) => number | null,
    filled = false,
  ): Series => ({
    label,
    color,
    filled,
    values: usages?.map((bucket) => (bucket ? read(bucket) : null) ?? 0) ?? [],
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
      {usages && (
        <>
          <SeriesChart
            title="Tokens"
            times={times}
            series={[
              sums("total", "text-better", ({ total_tokens }) => total_tokens, true),
              sums("output", "text-worse", ({ completion_tokens }) => completion_tokens),
            ]}
            onOpen={open()}
          />
          <SeriesChart
            title="Cost"
            unit="usd"
            times={times}
            series={[sums("total", "text-better", ({ total_cost }) => total_cost, true)]}
            onOpen={open()}
          />
        </>
      )}
    </section>
  );
}

/** The bucket at each start, in ms since the epoch. Null if there is none. */
function atEach<B extends { at: string }>(starts: readonly number[], buckets: readonly B[]): (B | null)[] {
  const known = new Map(buckets.map((bucket) => [Date.parse(bucket.at), bucket]));
  return starts.map((at) => known.get(at) ?? null);
}

type EndedSearch = Pick<RunsSearch, "assistant" | "status"> & { ended_from: number; ended_until: number };

/** Search of the run list for ended runs. Times are in ms since the epoch. */
export const runsSearch = ({ ended_from, ended_until, ...search }: EndedSearch): RunsSearch => ({
  ...search,
  ended_from: new Date(ended_from).toISOString(),
  ended_until: new Date(ended_until).toISOString(),
});
