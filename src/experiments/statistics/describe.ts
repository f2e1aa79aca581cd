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
