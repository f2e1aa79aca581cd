interface WilcoxonResult {
  /** The smaller of the rank sums of positive and of negative differences. */
  statistic: number;
  /** Two-sided. */
  p: number;
  /** The number of differences that are not zero. */
  n: number;
  method: "exact" | "asymptotic";
}

/** The maximum n of the exact distribution without ties. */
const EXACT_UP_TO = 50;
/** The maximum n of the exact distribution with ties; SciPy enumerates all 2^n sign combinations. */
const EXACT_WITH_TIES_UP_TO = 13;

/**
 * The two-sided Wilcoxon signed-rank test (1945) of paired differences; zeros and NaN are removed. Exact for small samples, otherwise
 * the normal approximation with tie correction and without continuity correction. The statistic and p equal
 * `scipy.stats.wilcoxon(d[d != 0])` of SciPy 1.17 (method "auto", correction=False), for d without NaN. If the zeros are passed to SciPy,
 * it may use the approximation where this function is exact.
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

/** Returns the ranks of numbers that are sorted by absolute value, doubled so that ties also have integers, and the sizes of ties. */
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
 * Counts the sign combinations of each rank sum with the shift algorithm of Streitberg and Röhmel (1986). There are 2^n
 * combinations, so the counts are exact in a double for n up to 53.
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

/** The series converges fast below this value, the continued fraction above. */
const SERIES_UP_TO = 3;

/**
 * P(Z > z) of the standard normal distribution for z >= 0, by the series and the continued fraction of Abramowitz and Stegun
 * (1964), 26.2.11 and 26.2.14. The relative error is below 1e-12 up to z = 37; the result is 0 from z = 39.
 */
export function normalTail(z: number): number {
  const density = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI);
  if (z < SERIES_UP_TO) {
    let term = z;
    let sum = z;
    for (let odd = 3; term > sum * Number.EPSILON; odd += 2) {
      term *= (z * z) / odd;
      sum += term;
    }
    return 0.5 - density * sum;
  }
  let fraction = z;
  for (let k = 100; k >= 1; k--) fraction = z + k / fraction;
  return density / fraction;
}

/**
 * The two-sided exact McNemar test (1947): twice the smaller tail of the binomial distribution, at most 1. Equals
 * `scipy.stats.binomtest(min(wins, losses), wins + losses, 0.5).pvalue` and R's `binom.test`.
 *
 * @param wins the number of examples that only the other experiment solves
 * @param losses the number of examples that only the baseline solves
 * @returns p; 0 when it is below 5e-324
 * @throws RangeError when a count is not a non-negative integer
 */
export function mcnemarExact(wins: number, losses: number): number {
  for (const count of [wins, losses])
    if (!Number.isSafeInteger(count) || count < 0)
      throw new RangeError(`The number of examples must be a non-negative integer, not ${count}.`);
  const n = wins + losses;
  const k = Math.min(wins, losses);
  if (n - 2 * k <= 1) return 1;
  return Math.min(1, 2 * probabilityUpTo(k, n));
}

/** P(X <= k) of n coin tosses. Sums P(X = i) from i = k downwards, as multiples of P(X = k), until the terms are negligible. */
function probabilityUpTo(k: number, n: number): number {
  let term = 1;
  let sum = 1;
  for (let i = k; i > 0 && term > sum * Number.EPSILON; i--) {
    term *= i / (n - i + 1);
    sum += term;
  }
  return sum * probabilityOf(k, n);
}

/**
 * P(X = k) = C(n, k) / 2^n. The divisions by 2, which cause no rounding error, are interleaved with the multiplications to keep the
 * product near 1 for any n. With logarithms of factorials, the result would lose about one digit of precision for each digit of n.
 */
function probabilityOf(k: number, n: number): number {
  let product = 1;
  let halvings = 0;
  for (let i = 1; i <= k; i++) {
    product *= (n - k + i) / i;
    for (; product > 1; halvings++) product /= 2;
  }
  return product * 2 ** (halvings - n);
}

/**
 * Adjusts p-values for multiple tests (Holm 1979): at a level of 0.05, the family-wise error rate is at most 0.05. Null means
 * a test that was not performed: it stays null and does not count. Equals `p.adjust(p, method = "holm")` of R.
 *
 * @returns the adjusted p-values in the same order
 * @throws RangeError when a p-value is not within 0 to 1
 */
export function holm(pValues: readonly (number | null)[]): (number | null)[] {
  const ascending = pValues.flatMap((p, index) => (p === null ? [] : [{ p, index }])).sort((a, b) => a.p - b.p);
  const adjusted = pValues.map((): number | null => null);
  let largest = 0;
  for (const [rank, { p, index }] of ascending.entries()) {
    if (!(p >= 0 && p <= 1)) throw new RangeError(`A p-value must be between 0 and 1, not ${p}.`);
    largest = Math.min(1, Math.max(largest, p * (ascending.length - rank)));
    adjusted[index] = largest;
  }
  return adjusted;
}
