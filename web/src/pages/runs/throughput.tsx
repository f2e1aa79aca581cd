import { useQuery } from "@tanstack/react-query";
import type { RunMinute } from "../../../../src/agent-server/contract/app-runs.ts";
import { ErrorState, Skeleton } from "../../ui/states.tsx";
import { clock } from "./filters.tsx";
import { throughputQuery } from "./queries.ts";
import { type Series, SeriesChart } from "./series-chart.tsx";

export function Throughput() {
  const { data, error, refetch } = useQuery(throughputQuery);
  if (error && !data) return <ErrorState error={error} retry={() => void refetch()} />;
  if (!data)
    return (
      <div
        role="status"
        aria-label="Loading charts"
        className="flex gap-8 px-6 py-3 max-sm:flex-col max-sm:gap-3 max-sm:px-4"
      >
        {["queue", "throughput"].map((chart) => (
          <Skeleton key={chart} className="h-[124px] flex-1 max-sm:h-[92px] max-sm:flex-none" />
        ))}
      </div>
    );
  const { minutes } = data;
  const times = minutes.map(({ at }) => clock(at));
  const series = (label: string, name: Exclude<keyof RunMinute, "at">, color: string): Series => ({
    label,
    color,
    values: minutes.map((minute) => minute[name]),
  });
  return (
    <section
      aria-label="Last hour"
      className="flex shrink-0 gap-8 border-line border-b px-6 py-3 max-sm:flex-col max-sm:gap-3 max-sm:px-4"
    >
      <SeriesChart
        title="Queue"
        times={times}
        series={[
          { ...series("pending", "waiting", "text-worse"), filled: true },
          series("running", "running", "text-running"),
        ]}
      />
      <SeriesChart
        title="Runs per minute"
        times={times}
        series={[
          { ...series("started", "started", "text-better"), filled: true },
          series("ended", "ended", "text-success"),
        ]}
      />
    </section>
  );
}
