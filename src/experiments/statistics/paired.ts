import type { PairComparison } from "../contract/comparison.ts";
import { type BootstrapOptions, bootstrapMeanInterval } from "./bootstrap.ts";
import { describe } from "./describe.ts";
import { mcnemarExact, wilcoxon } from "./significance-tests.ts";

interface ComparePairOptions extends Partial<BootstrapOptions> {
  /** Swaps wins and losses, and has no other effect. */
  lower_is_better?: boolean;
  /** The smallest difference that counts as a win or a loss, at least 0. */
  threshold?: number;
  /** False skips the interval and the test, which take 0.1 s for 10,000 pairs. */
  significance?: boolean;
}

type Interval = Pick<PairComparison, "ci_low" | "ci_high">;
type Test = Pick<PairComparison, "test" | "p_value">;

export type PairStatistics = Interval &
  Test &
  Pick<PairComparison, "n_paired" | "only_baseline" | "only_comparison" | "wins" | "losses" | "ties"> &
  Pick<PairComparison, "mean_baseline" | "mean_comparison" | "mean_delta">;

const NO_INTERVAL: Interval = { ci_low: null, ci_high: null };
const NO_TEST: Test = { test: null, p_value: null };

/**
 * Compares two score vectors by example index. Each score is the mean over the repetitions of an example. A score that is not finite, or
 * beyond the end of its vector, is missing: its example is not compared. The mean difference is `other` minus `baseline`, even
 * when lower is better. Interval and test do not depend on the threshold.
 *
 * @throws RangeError when the threshold is negative or an option of {@link bootstrapMeanInterval} is invalid
 */
export function comparePair(
  baseline: Float64Array,
  other: Float64Array,
  { lower_is_better = false, threshold = 0, significance = true, seed = 1, ...bootstrap }: ComparePairOptions = {},
): PairStatistics {
  if (!(threshold >= 0)) throw new RangeError(`The threshold must be at least 0, not ${threshold}.`);
  const { from, to, only_baseline, only_comparison } = pairsOf(baseline, other);
  const deltas = to.map((score, i) => score - (from[i] as number));
  const { up, down } = countDirections(from, to, threshold);
  return {
    n_paired: from.length,
    only_baseline,
    only_comparison,
    mean_baseline: describe(from).avg,
    mean_comparison: describe(to).avg,
    mean_delta: describe(deltas).avg,
    ...(significance ? intervalOf(deltas, { ...bootstrap, seed }) : NO_INTERVAL),
    wins: lower_is_better ? down : up,
    losses: lower_is_better ? up : down,
    ties: from.length - up - down,
    ...(significance ? testOf(from, to, deltas) : NO_TEST),
  };
}

/** Returns null bounds for fewer than two pairs. */
function intervalOf(deltas: Float64Array, options: BootstrapOptions): Interval {
  if (deltas.length < 2) return NO_INTERVAL;
  const [ci_low, ci_high] = bootstrapMeanInterval(deltas, options);
  return { ci_low, ci_high };
}

/** Returns the scores of the examples that have both scores, in the order of the examples. */
function pairsOf(baseline: Float64Array, other: Float64Array) {
  const from = new Float64Array(Math.min(baseline.length, other.length));
  const to = new Float64Array(from.length);
  let [n, only_baseline, only_comparison] = [0, 0, 0];
  for (let i = 0; i < Math.max(baseline.length, other.length); i++) {
    const [before = Number.NaN, after = Number.NaN] = [baseline[i], other[i]];
    if (Number.isFinite(before) && Number.isFinite(after)) {
      from[n] = before;
      to[n++] = after;
    } else if (Number.isFinite(after)) only_comparison++;
    else if (Number.isFinite(before)) only_baseline++;
  }
  return { from: from.subarray(0, n), to: to.subarray(0, n), only_baseline, only_comparison };
}

/** The numbers of scores that increased and decreased by at least the threshold. */
function countDirections(from: Float64Array, to: Float64Array, threshold: number) {
  let [up, down] = [0, 0];
  for (let i = 0; i < from.length; i++) {
    const direction = directionOf(from[i] as number, to[i] as number, threshold);
    if (direction > 0) up++;
    else if (direction < 0) down++;
  }
  return { up, down };
}

/** The McNemar test if all scores are 0 or 1, otherwise the Wilcoxon test; null without pairs. */
function testOf(from: Float64Array, to: Float64Array, deltas: Float64Array): Test {
  if (from.length === 0) return NO_TEST;
  const isBinary = (values: Float64Array) => values.every((value) => value === 0 || value === 1);
  if (!isBinary(from) || !isBinary(to))
    return { test: "wilcoxon", p_value: wilcoxon(withoutRoundoff(from, to, deltas)).p };
  const up = deltas.filter((delta) => delta > 0).length;
  const down = deltas.filter((delta) => delta < 0).length;
  return { test: "mcnemar", p_value: mcnemarExact(up, down) };
}

/** The maximum relative error of a score, which has 53 bits and may be a mean of several numbers. */
const ROUNDOFF = 2 ** -50;

const roundoffOf = (a: number, b: number): number => ROUNDOFF * (Math.abs(a) + Math.abs(b));

/**
 * Whether a score increased (1) or decreased (-1) by at least the threshold, or neither (0). Tolerates rounding errors: 0.9 - 0.8 is
 * 0.09999999999999998 and reaches the threshold 0.1; changes within the rounding error are 0.
 */
function directionOf(before: number, after: number, threshold: number): -1 | 0 | 1 {
  const size = Math.abs(after - before);
  const roundoff = roundoffOf(before, after);
  if (size <= roundoff || size + roundoff < threshold) return 0;
  return after > before ? 1 : -1;
}

/**
 * Deltas whose sizes differ only by rounding errors get the same size, and those within the rounding error of 0 become 0.
 * 0.4 - 0.3 and 0.3 - 0.2 differ by 5.6e-17, as do 1/3 - 0 and 1 - 2/3: rank tests would treat the noise as an order.
 */
function withoutRoundoff(from: Float64Array, to: Float64Array, deltas: Float64Array): Float64Array {
  const sizes = deltas.map(Math.abs);
  const ascending = Uint32Array.from(deltas.keys()).sort((a, b) => (sizes[a] as number) - (sizes[b] as number));
  const rounded = new Float64Array(deltas.length);
  // Each delta is compared with the smallest of its group, not with the previous: chains of small steps must not merge.
  let group = { size: 0, roundoff: 0 };
  for (const i of ascending) {
    const size = sizes[i] as number;
    const tolerance = roundoffOf(to[i] as number, from[i] as number);
    if (size - group.size > group.roundoff + tolerance) group = { size, roundoff: tolerance };
    rounded[i] = group.size * Math.sign(deltas[i] as number);
  }
  return rounded;
}

/**
 * The indexes of changed examples, in descending order of the change. An example with a missing score
 * (NaN) counts as unchanged.
 */
export function changesOf(
  baseline: Float64Array,
  other: Float64Array,
  { lower_is_better = false, threshold = 0 }: { lower_is_better?: boolean; threshold?: number } = {},
): { improved: number[]; regressed: number[] } {
  const up: number[] = [];
  const down: number[] = [];
  for (let i = 0; i < Math.min(baseline.length, other.length); i++) {
    const [before, after] = [baseline[i] as number, other[i] as number];
    if (!Number.isFinite(before) || !Number.isFinite(after)) continue;
    const direction = directionOf(before, after, threshold);
    if (direction > 0) up.push(i);
    else if (direction < 0) down.push(i);
  }
  const size = (i: number): number => Math.abs((other[i] as number) - (baseline[i] as number));
  const bySize = (indexes: number[]): number[] => indexes.sort((a, b) => size(b) - size(a) || a - b);
  return lower_is_better
    ? { improved: bySize(down), regressed: bySize(up) }
    : { improved: bySize(up), regressed: bySize(down) };
}
