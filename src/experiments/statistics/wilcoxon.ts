import { normalTail } from "./normal.ts";

export interface WilcoxonResult {
  /** The smaller of the rank sums of positive and of negative differences. */
  statistic: number;
  /** Two-sided. */
  p: number;
  /** Differences that are not zero. */
  n: number;
  method: "exact" | "asymptotic";
}

/** Up to here the exact distribution is used when no two differences are equally large. */
const EXACT_UP_TO = 50;
/** Up to here it is used whatever is equal; SciPy goes through all 2^n signs. */
const EXACT_WITH_TIES_UP_TO = 13;

/**
 * The Wilcoxon signed-rank test (1945) of paired differences, two-sided. Zeros are dropped, and NaN, which is missing.
 * Exact for small samples, otherwise the normal approximation with the correction for ties and without a correction for
 * continuity. The statistic and p equal `scipy.stats.wilcoxon(d[d != 0])` of SciPy 1.17 (method "auto",
 * correction=False). Given the zeros too, SciPy approximates where this is exact, for 14 to 50 differences; dropped
 * zeros say nothing about it.
 *
 * @returns p = 1 when no difference is left
 */
export function wilcoxon(differences: Float64Array | number[]): WilcoxonResult {
  const nonzero = Float64Array.from(differences)
    .filter((difference) => difference > 0 || difference < 0)
    .sort((a, b) => Math.abs(a) - Math.abs(b));
  const n = nonzero.length;
  const { doubledRanks, tieSizes } = rank(nonzero);
  let doubledPlus = 0;
  for (let i = 0; i < n; i++) if ((nonzero[i] as number) > 0) doubledPlus += doubledRanks[i] as number;
  const doubledStatistic = Math.min(doubledPlus, n * (n + 1) - doubledPlus);
  const statistic = doubledStatistic / 2;
  const isExact = n <= (tieSizes.length === 0 ? EXACT_UP_TO : EXACT_WITH_TIES_UP_TO);
  return isExact
    ? { statistic, p: exactP(doubledStatistic, doubledRanks), n, method: "exact" }
    : { statistic, p: asymptoticP(statistic, n, tieSizes), n, method: "asymptotic" };
}

/** Twice the ranks by absolute value, of numbers sorted by it: whole ones, even where equal numbers share a rank. */
function rank(sorted: Float64Array): { doubledRanks: Float64Array; tieSizes: number[] } {
  const n = sorted.length;
  const doubledRanks = new Float64Array(n);
  const tieSizes: number[] = [];
  for (let first = 0; first < n; ) {
    const size = Math.abs(sorted[first] as number);
    let next = first + 1;
    while (next < n && Math.abs(sorted[next] as number) === size) next++;
    doubledRanks.fill(first + 1 + next, first, next);
    if (next - first > 1) tieSizes.push(next - first);
    first = next;
  }
  return { doubledRanks, tieSizes };
}

/**
 * Counts the signs that give each rank sum, rank by rank (the shift algorithm of Streitberg and Röhmel 1986). There are
 * 2^n signs, so the counts are exact in a double for n up to 53.
 */
function exactP(doubledStatistic: number, doubledRanks: Float64Array): number {
  const n = doubledRanks.length;
  const ways = new Float64Array(n * (n + 1) + 1);
  ways[0] = 1;
  for (const doubledRank of doubledRanks)
    for (let sum = ways.length - 1; sum >= doubledRank; sum--)
      ways[sum] = (ways[sum] as number) + (ways[sum - doubledRank] as number);
  let waysAsFar = 0;
  for (let sum = 0; sum <= doubledStatistic; sum++) waysAsFar += ways[sum] as number;
  return Math.min(1, (2 * waysAsFar) / 2 ** n);
}

function asymptoticP(statistic: number, n: number, tieSizes: number[]): number {
  const mean = (n * (n + 1)) / 4;
  const ties = tieSizes.reduce((sum, size) => sum + size ** 3 - size, 0);
  const variance = (n * (n + 1) * (2 * n + 1) - ties / 2) / 24;
  return 2 * normalTail((mean - statistic) / Math.sqrt(variance));
}
