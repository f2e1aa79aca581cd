import type { Session } from "../../../../src/contract/experiments/sessions.ts";
import { Scroller } from "../../ui/scroller.tsx";
import { Trend } from "../../ui/trend.tsx";
import { byAge, type Metric } from "./metrics.ts";

/** One strip: what each measure was in the dataset's experiments, from the oldest to the newest. */
export function Trends({ sessions, metrics }: { sessions: readonly Session[]; metrics: readonly Metric[] }) {
  const inOrder = [...sessions].sort(byAge);
  return (
    <Scroller
      label="Trends over experiments"
      className="flex min-h-[75px] shrink-0 overflow-x-auto border-line border-b px-2"
    >
      {metrics.map((metric) => {
        const points = inOrder.flatMap((session) => {
          const value = metric.valueOf(session);
          return value === null ? [] : [{ id: session.id, label: session.name, value }];
        });
        if (points.length === 0) return null;
        return (
          <Trend
            key={metric.id}
            name={metric.name}
            points={points}
            format={metric.format}
            isLowerBetter={metric.isLowerBetter}
          />
        );
      })}
    </Scroller>
  );
}
