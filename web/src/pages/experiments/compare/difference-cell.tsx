import type { ReactNode } from "react";
import type { PairComparison } from "../../../../../src/experiments/contract/comparison.ts";
import { classes } from "../../../ui/classes.ts";
import { count, number } from "../../../ui/format.ts";
import { Skeleton } from "../../../ui/states.tsx";
import { deltaText, intervalText, pText, short } from "./difference-text.ts";
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
  onChoose(change: "better" | "worse" | undefined): void;
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
      title={`Only the examples that are ${change}, the ${change === "worse" ? "worst" : "best"} first`}
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
      <span className={classes("flex items-baseline font-mono max-sm:flex-wrap", compact ? "gap-1.5" : "gap-2")}>
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
  const text = pText(p_adjusted);
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
