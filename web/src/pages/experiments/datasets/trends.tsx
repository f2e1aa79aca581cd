import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { PairComparison } from "../../../../../src/experiments/contract/comparison.ts";
import type { Dataset } from "../../../../../src/experiments/contract/datasets/datasets.ts";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { HueDot } from "../../../ui/hue-dot.tsx";
import { ScrollRegion } from "../../../ui/layout.tsx";
import { Trend } from "../../../ui/trend.tsx";
import { ChangeMark } from "../compare/change-mark.tsx";
import { deltaText } from "../compare/difference-text.ts";
import { differencesQuery } from "../compare/queries.ts";
import { isSignificant, signOf } from "../compare/view.ts";
import { byAge, type Metric, newestPair } from "../metrics.ts";

/**
 * Each metric's trend over a dataset's experiments, and the newest experiment's difference from the baseline or from the
 * previous experiment.
 */
export function Trends({
  dataset: { id, baseline_experiment_id },
  sessions,
  metrics,
}: {
  dataset: Dataset;
  sessions: readonly Session[];
  metrics: readonly Metric[];
}) {
  const inOrder = [...sessions].sort(byAge);
  const { newest = inOrder.at(-1), from } = newestPair(sessions, baseline_experiment_id) ?? {};
  const { data: differences } = useQuery({
    ...differencesQuery(id, from && newest ? [from.id, newest.id] : [], true),
    enabled: from !== undefined,
  });
  const changeOf = (metric: Metric): ReactNode =>
    newest && from && <Change metric={metric} newest={newest} from={from} differences={differences} />;
  return (
    <ScrollRegion
      label="Trends across experiments"
      className="relative flex min-h-[75px] min-w-0 max-w-full shrink-0 overflow-x-auto border-line border-b px-2"
    >
      {newest && from && (
        <p className="w-48 shrink-0 border-line border-r px-4 py-2 text-note text-text-2">
          <span className="block truncate font-medium text-text" title={newest.name}>
            <HueDot name={newest.name} />
            {newest.name}
          </span>
          <span className="block truncate" title={from.name}>
            vs. <HueDot name={from.name} />
            {from.name}
          </span>
          <span className="block">({from.id === baseline_experiment_id ? "baseline" : "previous"})</span>
        </p>
      )}
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
            value={newest ? metric.valueOf(newest) : null}
            format={metric.format}
            change={changeOf(metric)}
          />
        );
      })}
    </ScrollRegion>
  );
}

/** Difference of the newest experiment from `from`. Coloured if significant; grey if not significant or not tested. */
function Change({
  metric,
  newest,
  from,
  differences,
}: {
  metric: Metric;
  newest: Session;
  from: Session;
  differences: readonly PairComparison[] | undefined;
}) {
  const { id, name, isLowerBetter, formatChange } = metric;
  const [after, before] = [metric.valueOf(newest), metric.valueOf(from)];
  if (after === null || before === null) return null;
  if (!id.startsWith("feedback."))
    return (
      <span className="font-mono text-text-3" title="Not tested for significance">
        {formatChange(after - before)}
      </span>
    );
  const difference = differences?.find(({ key }) => key === name);
  if (!difference || difference.mean_delta === null) return null;
  const significant = isSignificant(difference);
  return (
    <span className="font-mono" title={significant ? undefined : "Not statistically significant"}>
      <ChangeMark sign={signOf(difference.mean_delta, isLowerBetter)} isInsignificant={!significant}>
        {deltaText(difference, true, false)}
      </ChangeMark>
    </span>
  );
}
