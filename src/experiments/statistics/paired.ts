import { bootstrapMeanInterval } from "./bootstrap.ts";
import { describe } from "./describe.ts";
import { type Differences, differencesOf, moveOf, withoutRoundoff } from "./differences.ts";
import { mcnemarExact } from "./mcnemar.ts";
import { wilcoxon } from "./wilcoxon.ts";

export interface ComparePairOptions {
  /** Swaps wins and losses, nothing else. */
  lower_is_better?: boolean;
  /** How large a difference must be to count as a win or a loss, from 0. */
  threshold?: number;
  /** Of the interval; the default is always the same. */
  seed?: number;
  resamples?: number;
  level?: number;
  /** False leaves interval and test out, which are most of the work: 0.1 s of 10,000 pairs. */
  significance?: boolean;
}

/** How the scores of an experiment differ from a baseline's, over the examples that both have. */
export interface PairComparison {
  n_paired: number;
  /** Examples that only the other has. */
  missing_baseline: number;
  /** Examples that only the baseline has. */
  missing_other: number;
  mean_baseline: number | null;
  mean_other: number | null;
  /** Other minus baseline, also where lower is better. */
  mean_delta: number | null;
  /** The interval of the mean difference; null for fewer than two pairs. */
  ci_low: number | null;
  ci_high: number | null;
  wins: number;
  ties: number;
  losses: number;
  /** McNemar's when all scores are 0 or 1, null without pairs. Neither depends on the threshold. */
  test: "mcnemar" | "wilcoxon" | null;
  p: number | null;
}

/**
 * Compares two vectors of scores by example; the shorter one has none of the rest. Each score is the mean over the
 * example's repetitions, so that an example counts once however often it was run. NaN, or any number that is not
 * finite, is a missing score: it is neither a win nor a loss.
 *
 * @throws RangeError when the threshold is negative, or for the reasons of {@link bootstrapMeanInterval}
 */
export function comparePair(
  baseline: Float64Array,
  other: Float64Array,
  { lower_is_better = false, threshold = 0, significance = true, ...bootstrap }: ComparePairOptions = {},
): PairComparison {
  if (!(threshold >= 0)) throw new RangeError(`The threshold must be at least 0, not ${threshold}.`);
  const { from, to, missing_baseline, missing_other } = pairsOf(baseline, other);
  const differences = differencesOf(from, to);
  const { up, down } = movesOf(from, to, threshold);
  return {
    n_paired: from.length,
    missing_baseline,
    missing_other,
    mean_baseline: describe(from).avg,
    mean_other: describe(to).avg,
    mean_delta: describe(differences.deltas).avg,
    wins: lower_is_better ? down : up,
    ties: from.length - up - down,
    losses: lower_is_better ? up : down,
    ...(significance ? { ...intervalOf(differences, bootstrap), ...testOf(from, to, differences) } : UNTESTED),
  };
}

const UNTESTED = { ci_low: null, ci_high: null, test: null, p: null } as const;

function intervalOf(
  { deltas }: Differences,
  { seed = 1, resamples, level }: Pick<ComparePairOptions, "seed" | "resamples" | "level">,
): Pick<PairComparison, "ci_low" | "ci_high"> {
  if (deltas.length < 2) return { ci_low: null, ci_high: null };
  const [ci_low, ci_high] = bootstrapMeanInterval(deltas, { seed, resamples, level });
  return { ci_low, ci_high };
}

/** The scores of the examples that both have, in order. */
function pairsOf(baseline: Float64Array, other: Float64Array) {
  const from = new Float64Array(Math.min(baseline.length, other.length));
  const to = new Float64Array(from.length);
  let [n, missing_baseline, missing_other] = [0, 0, 0];
  for (let i = 0; i < Math.max(baseline.length, other.length); i++) {
    const [before = Number.NaN, after = Number.NaN] = [baseline[i], other[i]];
    if (Number.isFinite(before) && Number.isFinite(after)) {
      from[n] = before;
      to[n++] = after;
    } else if (Number.isFinite(after)) missing_baseline++;
    else if (Number.isFinite(before)) missing_other++;
  }
  return { from: from.subarray(0, n), to: to.subarray(0, n), missing_baseline, missing_other };
}

/** How many scores rose and fell by the threshold or more. */
function movesOf(from: Float64Array, to: Float64Array, threshold: number) {
  let [up, down] = [0, 0];
  for (let i = 0; i < from.length; i++) {
    const move = moveOf(from[i] as number, to[i] as number, threshold);
    if (move > 0) up++;
    else if (move < 0) down++;
  }
  return { up, down };
}

function testOf(from: Float64Array, to: Float64Array, differences: Differences): Pick<PairComparison, "test" | "p"> {
  if (from.length === 0) return { test: null, p: null };
  const isBinary = (values: Float64Array) => values.every((value) => value === 0 || value === 1);
  if (!isBinary(from) || !isBinary(to)) return { test: "wilcoxon", p: wilcoxon(withoutRoundoff(differences)).p };
  const up = differences.deltas.filter((delta) => delta > 0).length;
  const down = differences.deltas.filter((delta) => delta < 0).length;
  return { test: "mcnemar", p: mcnemarExact(up, down) };
}
