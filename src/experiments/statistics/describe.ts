import type { KeyStats } from "../contract/sessions.ts";

/**
 * Ignores NaN, which is a missing value. `stdev` is the sample standard deviation (divided by n - 1), null for fewer than two
 * numbers. Uses two passes with compensated sums (Neumaier 1974): the mean of 10,000 scores with 7,300 ones is 0.73, where
 * Welford's recurrence returns 0.7300000000000005.
 */
export function describe(values: ArrayLike<number>): Pick<KeyStats, "n" | "avg" | "min" | "max" | "stdev"> {
  let n = 0;
  let min = Infinity;
  let max = -Infinity;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    if (Number.isNaN(value)) continue;
    n++;
    if (value < min) min = value;
    if (value > max) max = value;
  }
  if (n === 0) return { n, avg: null, min: null, max: null, stdev: null };
  // Without the bounds, rounding could move the mean of equal numbers and make their deviation positive.
  const avg = Math.min(max, Math.max(min, sum(values, (value) => value) / n));
  const stdev = n < 2 ? null : Math.sqrt(sum(values, (value) => (value - avg) ** 2) / (n - 1));
  return { n, avg, min, max, stdev };
}

/** The compensated sum of `term` over the values that are not NaN. */
function sum(values: ArrayLike<number>, term: (value: number) => number): number {
  let total = 0;
  let lost = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    if (Number.isNaN(value)) continue;
    const added = term(value);
    const next = total + added;
    lost += Math.abs(total) >= Math.abs(added) ? total - next + added : added - next + total;
    total = next;
  }
  return total + lost;
}

/**
 * The `p`-th percentile with linear interpolation between the closest ranks: type 7 of Hyndman and Fan (1996), the default of
 * numpy and R.
 *
 * @param sorted numbers in ascending order without NaN
 * @param p from 0 to 100
 * @returns null for an empty list
 * @throws RangeError when p is not within 0 to 100
 */
export function percentile(sorted: Float64Array | number[], p: number): number | null {
  if (!(p >= 0 && p <= 100)) throw new RangeError(`The percentile must be between 0 and 100, not ${p}.`);
  if (sorted.length === 0) return null;
  const rank = (sorted.length - 1) * (p / 100);
  const below = sorted[Math.floor(rank)] as number;
  const above = sorted[Math.ceil(rank)] as number;
  const share = rank - Math.floor(rank);
  // Interpolates from the nearer rank, as numpy does: the result never leaves the range.
  return share < 0.5 ? below + (above - below) * share : above - (above - below) * (1 - share);
}
