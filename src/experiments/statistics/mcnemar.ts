/**
 * The exact McNemar test (1947): how likely wins and losses are at least as far apart as these when both are equally
 * likely. Two-sided; twice the smaller tail of the binomial distribution, at most 1. Equals
 * `scipy.stats.binomtest(min(wins, losses), wins + losses, 0.5).pvalue` and R's `binom.test`.
 *
 * @param wins examples that only the other has right
 * @param losses examples that only the baseline has right
 * @returns p; 0 when it is below 5e-324
 * @throws RangeError when a count is not a whole number from 0
 */
export function mcnemarExact(wins: number, losses: number): number {
  for (const count of [wins, losses])
    if (!Number.isSafeInteger(count) || count < 0) throw new RangeError(`${count} is not a number of examples.`);
  const n = wins + losses;
  const k = Math.min(wins, losses);
  if (n - 2 * k <= 1) return 1;
  return Math.min(1, 2 * probabilityUpTo(k, n));
}

/** P(X <= k) of n tosses of a coin. The terms shrink fast below k, so they are summed as multiples of the first. */
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
 * P(X = k) = C(n, k) / 2^n. The halvings are taken in between, exactly, which keeps the product near 1 however large n
 * is; a difference of logarithms of factorials would lose a digit with each digit of n.
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
