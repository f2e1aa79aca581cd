import type { ReactNode } from "react";
import type { PairComparison } from "../../../../../../src/experiments/contract/comparison.ts";
import { count, number } from "../../../../ui/format.ts";
import { classes } from "../../../../ui/layout.tsx";
import { Skeleton } from "../../../../ui/states.tsx";
import { ChangeMark } from "../change-mark.tsx";
import { deltaText, intervalText, pText, withoutLeadingZeros } from "../difference-text.ts";
import type { Search } from "../search.ts";
import { isSignificant, signOf } from "../view.ts";
import type { Density } from "./experiment-head.tsx";

interface DifferenceCellProps {
  /** The mean score as a text. */
  mean: string;
  difference: PairComparison | undefined;
  /** Whether confidence intervals and p-values have been computed. */
  isTested: boolean;
  histogram: ReactNode;
  /** Active filter for better or worse examples. */
  chosen: Search["change"];
  onChoose(change: "better" | "worse" | undefined): void;
  /** Feedback key and experiment for screen readers, for example `correctness in prompt-v2`. */
  name: string;
  density: Density;
  /** Whether the cells have two lines only, because the matrix has many keys. */
  isFlat: boolean;
}

/** Compares an experiment with the baseline for one key: mean, difference, significance, and numbers of better and worse examples. */
export function DifferenceCell({
  mean,
  difference,
  isTested,
  histogram,
  chosen,
  onChoose,
  name,
  density,
  isFlat,
}: DifferenceCellProps) {
  const compact = density === "narrow";
  if (!difference)
    return (
      <>
        <span className="block font-mono font-semibold">{mean}</span>
        <Skeleton className="mt-1 w-32" />
      </>
    );
  const { mean_delta, is_lower_score_better, wins, losses, ties } = difference;
  const significant = isTested && isSignificant(difference);
  const choose = (change: "better" | "worse", times: number) => (
    <button
      type="button"
      disabled={times === 0}
      aria-pressed={chosen === change}
      title={`Show ${change} examples, ${change === "worse" ? "worst" : "best"} first`}
      onClick={() => onChoose(chosen === change ? undefined : change)}
      className={classes(
        "-mx-1 rounded px-1 hover:not-disabled:bg-hover disabled:text-text-3",
        chosen === change && "bg-selected",
      )}
    >
      <ChangeMark sign={change === "better" ? 1 : -1} isInsignificant={times === 0} isTextual>
        {count(times)} {compact ? <span className="sr-only">{change}</span> : change}
      </ChangeMark>
      <span className="sr-only"> for {name}</span>
    </button>
  );
  return (
    <>
      <span className={classes("flex flex-wrap items-baseline font-mono", compact ? "gap-x-1.5" : "gap-x-2")}>
        <span className="font-semibold">{mean}</span>
        {mean_delta !== null && (
          <ChangeMark sign={signOf(mean_delta, is_lower_score_better)} isInsignificant={isTested && !significant}>
            {deltaText(difference, isTested, compact)}
          </ChangeMark>
        )}
        {isTested && mean_delta !== null && (
          <span className="text-text-3" title="95 % confidence interval of the mean difference">
            {intervalText(difference, compact)}
          </span>
        )}
      </span>
      <span className={classes("flex flex-wrap items-center whitespace-nowrap text-text-2", GAPS[density])}>
        {histogram}
        {choose("better", wins)}
        {choose("worse", losses)}
        {density === "wide" && (
          <span className="text-text-3" title={`Examples with the same score in both experiments: ${count(ties)}`}>
            {count(ties)} same
          </span>
        )}
        <Significance difference={difference} isTested={isTested} significant={significant} compact={compact} />
        <Pairs {...difference} compact={compact || (isFlat && density === "medium")} />
      </span>
    </>
  );
}

const GAPS = { wide: "gap-x-3", medium: "gap-x-2", narrow: "gap-x-1" } as const;

function Significance({
  difference,
  isTested,
  significant,
  compact,
}: {
  difference: PairComparison;
  isTested: boolean;
  significant: boolean;
  compact: boolean;
}) {
  if (!isTested) return <span className="animate-pulse-slow text-text-3">computing…</span>;
  const { p_adjusted, test } = difference;
  if (p_adjusted === null) return null;
  const text = pText(p_adjusted);
  const title = `p = ${number(p_adjusted)}, ${test === "mcnemar" ? "McNemar's test" : "Wilcoxon signed-rank test"}, corrected for multiple comparisons (Holm)`;
  return (
    <span className={classes(!compact && "font-mono", significant ? "text-text" : "text-text-3")} title={title}>
      {significant ? (compact ? withoutLeadingZeros(text) : text) : "n.s."}
    </span>
  );
}

/** Number of examples that have a score in both experiments. Hidden if all examples have both scores. */
function Pairs({ n_paired, only_baseline, only_comparison, compact }: PairComparison & { compact: boolean }) {
  const all = n_paired + only_baseline + only_comparison;
  if (all === n_paired) return null;
  return (
    <span
      title={`Examples with a score in both experiments: ${count(n_paired)}. Only these are compared. Examples with a score in at least one of the two experiments: ${count(all)}.`}
    >
      n {count(n_paired)}
      <span className={classes(compact && "sr-only")}> of {count(all)}</span>
    </span>
  );
}
