import type { Session } from "../../../../../../src/experiments/contract/sessions.ts";
import { count, decimalsFor, delta, fixed, number, percent, seconds } from "../../../../ui/format.ts";
import { classes } from "../../../../ui/layout.tsx";
import { UntestedChange } from "../change-mark.tsx";
import { changePatch } from "../order.ts";
import type { Search } from "../search.ts";
import type { Key, View } from "../view.ts";
import { DifferenceCell } from "./difference-cell.tsx";
import { densityOf, isFlat } from "./experiment-head.tsx";

const HISTOGRAM_PX = { wide: 60, medium: 40, narrow: 24 } as const;

/** An experiment's scores for one key. */
export function ScoreCell({
  view,
  session,
  index,
  scoreKey: key,
  search,
  onChange,
}: {
  view: View;
  session: Session;
  index: number;
  scoreKey: Key;
  search: Search;
  onChange(change: Partial<Search>): void;
}) {
  const stats = session.feedback_stats?.[key.name];
  const counts = key.distribution?.counts[index];
  if (!stats) return <span className="text-text-3">–</span>;
  if (!key.distribution || !counts) return <Labels values={stats.values} n={stats.n} />;
  // All means of the row have the same precision.
  const decimals = decimalsFor(view.shown.map(({ feedback_stats }) => feedback_stats?.[key.name]?.avg));
  const mean = decimals === undefined ? number(stats.avg) : fixed(stats.avg, decimals);
  const histogram = (
    <Histogram
      width={HISTOGRAM_PX[densityOf(view.shown.length)]}
      counts={counts}
      label={`Distribution of ${key.name} from ${number(key.distribution.low)} to ${number(key.distribution.high)}: ${counts.map(count).join(", ")}`}
    />
  );
  if (index === 0)
    return (
      <>
        <span className="block font-mono">
          <span className="font-semibold">{mean}</span>
        </span>
        <span className="flex items-center gap-2 text-text-2">
          {histogram}
          <span className="font-mono">n {count(stats.n)}</span>
        </span>
      </>
    );
  return (
    <DifferenceCell
      mean={mean}
      difference={view.differenceOf(session.id, key.name)}
      isTested={view.hasSignificance}
      histogram={histogram}
      chosen={search.changeIn === session.id && search.changeKey === key.name ? search.change : undefined}
      onChoose={(change) => onChange(changePatch(view, search, change, key.name, session.id))}
      density={densityOf(view.shown.length)}
      isFlat={isFlat(view)}
      name={`${key.name} in ${session.name}`}
    />
  );
}

/** Labels with their counts, most frequent first. Comments without a label are only counted. */
function Labels({ values, n }: { values: Record<string, number>; n: number }) {
  const labels = Object.entries(values).sort(([, a], [, b]) => b - a);
  if (labels.length === 0)
    return (
      <span className="text-text-2">
        {count(n)} comment{n === 1 ? "" : "s"}
      </span>
    );
  return (
    <span className="flex max-w-60 flex-wrap gap-x-3">
      {labels.slice(0, 4).map(([label, times]) => (
        <span key={label} className="max-w-28 truncate">
          {label} <span className="font-mono text-text-2">{count(times)}</span>
        </span>
      ))}
      {labels.length > 4 && <span className="text-text-3">{labels.length - 4} more</span>}
    </span>
  );
}

export const LatencyCell = ({ session, baseline }: { session: Session; baseline: Session }) => (
  <Figure value={session.latency_p50} from={session === baseline ? undefined : baseline.latency_p50} text={seconds} />
);

/** A number for which lower is better, with its difference from the baseline. */
function Figure({
  value,
  from,
  text,
}: {
  value: number | null;
  from: number | null | undefined;
  text(value: number | null | undefined): string;
}) {
  const difference = value === null || from === null || from === undefined ? undefined : value - from;
  return (
    <span className="inline-flex gap-2 font-mono">
      {text(value)}
      {difference !== undefined && <UntestedChange difference={difference}>{delta(difference, text)}</UntestedChange>}
    </span>
  );
}

const errorsOf = ({ error_rate, run_count }: Session): number => Math.round((error_rate ?? 0) * (run_count ?? 0));

/** Number of failed runs. A click shows only the examples with failed runs. */
export function ErrorsCell({
  session,
  baseline,
  isOnly,
  onChange,
}: {
  session: Session;
  baseline: Session;
  isOnly: boolean;
  onChange(change: Partial<Search>): void;
}) {
  const errors = errorsOf(session);
  const difference = errors - errorsOf(baseline);
  return (
    <span className="inline-flex gap-2 font-mono">
      {errors === 0 ? (
        "0"
      ) : (
        <button
          type="button"
          aria-pressed={isOnly}
          title="Show examples with failed runs"
          className={classes("rounded px-1 -mx-1 hover:bg-hover", isOnly && "bg-selected text-accent-text")}
          onClick={() => onChange({ failed: isOnly ? undefined : session.id })}
        >
          {count(errors)} ({percent(session.error_rate)})
        </button>
      )}
      {session !== baseline && difference !== 0 && (
        <UntestedChange difference={difference}>{delta(difference, count)}</UntestedChange>
      )}
    </span>
  );
}

/** A histogram of scores, scaled to the highest bar. */
function Histogram({
  counts,
  label,
  width,
}: {
  counts: readonly number[];
  label: string;
  /** Width in pixels. */
  width: number;
}) {
  const max = Math.max(1, ...counts);
  return (
    <svg
      role="img"
      aria-label={label}
      width={width}
      height={16}
      viewBox="0 0 60 16"
      preserveAspectRatio="none"
      className="shrink-0 text-text-3"
    >
      <title>{label}</title>
      <line x1={0} x2={60} y1={15.5} y2={15.5} stroke="currentColor" strokeWidth={1} opacity={0.5} />
      {counts.map((count, index) => {
        // A non-empty bar is at least one pixel high, so that the bar stays visible.
        const height = count === 0 ? 0 : Math.max(1, (count / max) * 15);
        // biome-ignore lint/suspicious/noArrayIndexKey: ranges are identified by position
        return <rect key={index} x={index * 6} y={15.5 - height} width={5} height={height} fill="currentColor" />;
      })}
    </svg>
  );
}
