import type { ReactNode } from "react";
import type { PairComparison } from "../../../../../src/contract/experiments/comparison.ts";
import { classes } from "../../../ui/classes.ts";
import { count, DASH, delta, fixed, number } from "../../../ui/format.ts";
import { Skeleton } from "../../../ui/states.tsx";
import { Move } from "./move.tsx";
import type { Room } from "./room.ts";
import type { Search } from "./search.ts";
import { isSignificant, signOf } from "./view.ts";

interface DifferenceCellProps {
  mean: number | null;
  difference: PairComparison | undefined;
  /** Intervals and tests have been computed. */
  isWhole: boolean;
  histogram: ReactNode;
  /** What the table is narrowed to. */
  chosen: Search["change"];
  onChoose(change: Search["change"]): void;
  /** For screen readers: `correct in second try`. */
  name: string;
  room: Room;
}

/** One experiment in one key against the baseline: the mean, how far it is off, whether that is sure, and who changed. */
export function DifferenceCell({
  mean,
  difference,
  isWhole,
  histogram,
  chosen,
  onChoose,
  name,
  room,
}: DifferenceCellProps) {
  const compact = room === "narrow";
  if (!difference)
    return (
      <>
        <span className="block font-mono font-semibold">{number(mean)}</span>
        <Skeleton className="mt-1 w-32" />
      </>
    );
  const { mean_delta, is_lower_score_better, wins, losses, ties } = difference;
  const sure = isWhole && isSignificant(difference);
  const choose = (change: "better" | "worse", times: number) => (
    <button
      type="button"
      disabled={times === 0}
      aria-pressed={chosen === change}
      title={`Only the examples that are ${change}`}
      onClick={() => onChoose(chosen === change ? undefined : change)}
      className={classes(
        "-mx-1 rounded px-1 hover:not-disabled:bg-hover disabled:text-text-3",
        chosen === change && "bg-selected",
      )}
    >
      <Move sign={change === "better" ? 1 : -1} isChance={times === 0} isSaid>
        {count(times)} {compact ? <span className="sr-only">{change}</span> : change}
      </Move>
      <span className="sr-only"> for {name}</span>
    </button>
  );
  return (
    <>
      <span className={classes("flex items-baseline font-mono", compact ? "gap-1.5" : "gap-2")}>
        <span className="font-semibold">{number(mean)}</span>
        {mean_delta !== null && (
          <Move sign={signOf(mean_delta, is_lower_score_better)} isChance={isWhole && !sure}>
            {deltaText(difference, isWhole, compact)}
          </Move>
        )}
        {isWhole && mean_delta !== null && (
          <span className="text-text-3" title="95 % confidence interval of the mean difference">
            {intervalText(difference, compact)}
          </span>
        )}
        {!compact && <Pairs {...difference} />}
      </span>
      <span className={classes("flex flex-wrap items-center text-text-2 max-sm:flex-nowrap", GAPS[room])}>
        {histogram}
        {choose("better", wins)}
        {choose("worse", losses)}
        {room === "wide" && (
          <span className="text-text-3" title={`${count(ties)} examples have the same score`}>
            {count(ties)} same
          </span>
        )}
        <Sureness difference={difference} isWhole={isWhole} sure={sure} compact={compact} />
        {compact && <Pairs {...difference} compact />}
      </span>
    </>
  );
}

const GAPS = { wide: "gap-x-3", medium: "gap-x-2", narrow: "gap-x-1" } as const;

/** As many decimals as tell the ends of the interval apart, to a tenth of its width. */
function decimalsOf({ ci_low, ci_high }: PairComparison): number {
  const width = ci_low === null || ci_high === null ? 0 : ci_high - ci_low;
  return width > 0 ? Math.min(10, Math.max(0, 1 - Math.floor(Math.log10(width)))) : 3;
}

/** `.035` instead of `0.035`; `10.5` stays. */
const short = (text: string) => text.replaceAll(/(?<!\d)0\./g, ".").replace(", ", ",");

/** With the decimals of the interval, once there is one. */
function deltaText(difference: PairComparison, isWhole: boolean, compact: boolean): string {
  const format = (size: number | null | undefined) => (isWhole ? fixed(size, decimalsOf(difference)) : number(size));
  const text = delta(difference.mean_delta, format);
  return compact ? short(text) : text;
}

/** `[0.012, 0.058]`, in a narrow column `[.012, .058]`. */
function intervalText(difference: PairComparison, compact: boolean): string {
  const { ci_low, ci_high } = difference;
  if (ci_low === null || ci_high === null) return DASH;
  const text = (end: number) => fixed(end, decimalsOf(difference));
  const written = `[${text(ci_low)}, ${text(ci_high)}]`;
  return compact ? short(written) : written;
}

function Sureness({
  difference,
  isWhole,
  sure,
  compact,
}: {
  difference: PairComparison;
  isWhole: boolean;
  sure: boolean;
  compact: boolean;
}) {
  if (!isWhole) return <span className="animate-pulse-slow text-text-3">testing…</span>;
  const { p_adjusted, test } = difference;
  if (p_adjusted === null) return null;
  const text = `p ${p_adjusted < 0.001 ? "<0.001" : p_adjusted.toPrecision(1)}`;
  const title = `p = ${number(p_adjusted)}, ${test === "mcnemar" ? "McNemar's test" : "Wilcoxon's signed-rank test"}, corrected for all keys and experiments (Holm)`;
  return (
    <span className={classes(!compact && "font-mono", sure ? "text-text" : "text-text-3")} title={title}>
      {sure ? (compact ? short(text) : text) : "n.s."}
    </span>
  );
}

/** How many examples have both scores, where some have not. */
function Pairs({ n_paired, only_baseline, only_comparison, compact }: PairComparison & { compact?: true }) {
  const all = n_paired + only_baseline + only_comparison;
  if (all === n_paired) return null;
  return (
    <span
      className={compact ? undefined : "text-text-2"}
      title={`Of ${count(all)} examples both have a score for ${count(n_paired)}; only these are compared`}
    >
      n {count(n_paired)}
      <span className={compact ? "sr-only" : undefined}> of {count(all)}</span>
    </span>
  );
}
