import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { describe as describeNumbers } from "../../src/experiments/statistics/describe.ts";
import { bootstrapMeanInterval, comparePair, Random, seededRandom } from "../../src/experiments/statistics/paired.ts";
import { holm, mcnemarExact, normalTail, wilcoxon } from "../../src/experiments/statistics/significance-tests.ts";
import { percentile } from "../../src/platform/lib/percentile.ts";

/*
 * Expected values are published ones, or come from SciPy 1.17.1, statsmodels 0.15.0 and NumPy 2.4.6 on Python 3.11 by
 * the call that is given beside them; `np` is numpy, `stats` is scipy.stats.
 */

/** How far `actual` is from `expected`, as a share of it. */
const relativeError = (actual: number, expected: number) => Math.abs(actual / expected - 1);

const numbers = (length: number, at: (i: number) => number) => Array.from({ length }, (_, i) => at(i));

/** Numbers from 0 to 1 that look random: `((i * 7919) % 1009) / 1009`, also in Python. */
const scattered = (length: number) => numbers(length, (i) => ((i * 7919) % 1009) / 1009);

describe("percentile", () => {
  it("gives the published examples of linear interpolation", () => {
    // https://en.wikipedia.org/wiki/Percentile, "second variant, C = 1"
    expect(percentile([15, 20, 35, 40, 50], 40)).toBe(29);
    expect(percentile([1, 2, 3, 4], 75)).toBe(3.25);
  });

  it.each([
    [0, 0.0],
    [1, 0.02060455896927651],
    [2.5, 0.02666005946481665],
    [33.3, 0.33188107036669967],
    [50, 0.5064420218037662],
    [90, 0.9022794846382558],
    [99, 0.9921110009910803],
    [99.9, 0.9956432111000991],
    [100, 0.9960356788899901],
  ])("gives numpy's %d-th percentile", (p, expected) => {
    // np.percentile(np.sort([((i * 7919) % 1009) / 1009 for i in range(100)]), p)
    expect(percentile(Float64Array.from(scattered(100)).sort(), p)).toBe(expected);
  });

  it("rounds as numpy does", () => {
    // np.percentile([0.3, 1.1], [26, 50]); from the other end it would be 0.5080000000000001 and 0.7
    expect([26, 50].map((p) => percentile([0.3, 1.1], p))).toEqual([0.508, 0.7000000000000001]);
  });

  it("of one number is that number, and of none is null", () => {
    expect([0, 37, 100].map((p) => percentile(Float64Array.of(0.5), p))).toEqual([0.5, 0.5, 0.5]);
    expect(percentile([], 50)).toBeNull();
  });

  it("refuses invalid percentiles", () => {
    for (const p of [-0.1, 100.1, Number.NaN]) expect(() => percentile([1, 2], p)).toThrow(RangeError);
  });

  it("lies between the ends and grows with p", () => {
    const share = fc.double({ min: 0, max: 100, noNaN: true });
    fc.assert(
      fc.property(fc.float64Array({ minLength: 1, noNaN: true, min: -1e9, max: 1e9 }), share, share, (values, p, q) => {
        const sorted = values.toSorted();
        const low = percentile(sorted, Math.min(p, q)) as number;
        const high = percentile(sorted, Math.max(p, q)) as number;
        expect(low).toBeGreaterThanOrEqual(sorted[0] as number);
        expect(high).toBeLessThanOrEqual(sorted.at(-1) as number);
        // Between two values it grows up to rounding, which is 1e-7 at 1e9.
        expect(high - low).toBeGreaterThanOrEqual(-1e-6);
      }),
    );
  });
});

describe("describe", () => {
  /** The data sets NumAcc2 to NumAcc4: one middle value, then 1,000 of them 0.1 below and above in turn. */
  const numAcc = (whole: number) => numbers(1001, (i) => Number(`${whole}.${i === 0 ? 2 : i % 2 === 1 ? 1 : 3}`));

  it.each([
    // NIST StRD, univariate summary statistics: certified mean and standard deviation. The digits of the deviation that
    // doubles can hold: 0.1 on values of 1e7 has 8 of them.
    ["NumAcc1", [10000001, 10000003, 10000002], 10000002, 1, 1e-15],
    ["NumAcc2", numAcc(1), 1.2, 0.1, 1e-14],
    ["NumAcc3", numAcc(1000000), 1000000.2, 0.1, 1e-9],
    ["NumAcc4", numAcc(10000000), 10000000.2, 0.1, 1e-8],
  ])("gives NIST's certified values of %s", (_, values, mean, deviation, tolerance) => {
    const { n, avg, stdev } = describeNumbers(values);
    expect(n).toBe(values.length);
    expect(relativeError(avg as number, mean)).toBeLessThan(2.3e-16);
    expect(relativeError(stdev as number, deviation)).toBeLessThan(tolerance);
  });

  it("gives numpy's mean and sample deviation", () => {
    // z = [0.1, 0.4, 0.4, 0.9, 0.35, 0.6]; np.mean(z), np.std(z, ddof=1)
    const { avg, stdev, ...rest } = describeNumbers([0.1, 0.4, 0.4, 0.9, 0.35, 0.6]);
    expect(rest).toEqual({ n: 6, min: 0.1, max: 0.9 });
    expect(relativeError(avg as number, 0.4583333333333333)).toBeLessThan(1e-15);
    expect(relativeError(stdev as number, 0.2691034497487289)).toBeLessThan(1e-15);
  });

  it("returns null for statistics of too few numbers", () => {
    expect(describeNumbers([])).toEqual({ n: 0, avg: null, min: null, max: null, stdev: null });
    expect(describeNumbers([Number.NaN])).toEqual({ n: 0, avg: null, min: null, max: null, stdev: null });
    expect(describeNumbers([3])).toEqual({ n: 1, avg: 3, min: 3, max: 3, stdev: null });
  });

  it("leaves out NaN", () => {
    const values = Float64Array.of(Number.NaN, 1, Number.NaN, 2, 3, Number.NaN);
    expect(describeNumbers(values)).toEqual({ n: 3, avg: 2, min: 1, max: 3, stdev: 1 });
  });

  it("has the mean of 10,000 scores to the last digit", () => {
    expect(describeNumbers(numbers(10_000, (i) => (i % 100 < 73 ? 1 : 0))).avg).toBe(0.73);
    expect(describeNumbers(numbers(10_000, () => 0.1))).toEqual({ n: 10_000, avg: 0.1, min: 0.1, max: 0.1, stdev: 0 });
    // What is lost to the large ones is not lost for good.
    expect(describeNumbers([1, 1e100, 1, -1e100]).avg).toBe(0.5);
  });

  it("keeps equal numbers' mean at them, and their deviation at 0", () => {
    fc.assert(
      fc.property(fc.double({ min: -1e9, max: 1e9, noNaN: true }), fc.integer({ min: 2, max: 50 }), (value, n) => {
        expect(describeNumbers(numbers(n, () => value))).toMatchObject({ avg: value, stdev: 0 });
      }),
    );
  });
});

describe("random numbers", () => {
  it("are those of xoshiro128**", () => {
    // xoshiro128starstar.c from the state {1, 2, 3, 4}, as the tests of Rust's rand_xoshiro list them.
    const random = new Random([1, 2, 3, 4]);
    expect(numbers(10, () => random.nextUint32())).toEqual([
      11520, 0, 5927040, 70819200, 2031721883, 1637235492, 1287239034, 3734860849, 3729100597, 4258142804,
    ]);
  });

  it("are seeded by splitmix64", () => {
    // Its first outputs for 1234567 are 6457827717110365317 and 3203168211198807973 (rosettacode.org, splitmix64).
    const published = new Random([0xfb08fc85, 0x599ed017, 0x58540fa5, 0x2c73f084]);
    const random = seededRandom(1234567);
    expect(numbers(4, () => random.nextUint32())).toEqual(numbers(4, () => published.nextUint32()));
  });

  it("differ between seeds, which may be negative but not fractions", () => {
    const first = [-1, 0, 1, 2, Number.MAX_SAFE_INTEGER].map((seed) => seededRandom(seed).nextUint32());
    expect(new Set(first).size).toBe(5);
    expect(() => seededRandom(0.5)).toThrow(RangeError);
  });

  it("below n are spread evenly", () => {
    const random = seededRandom(7);
    const counts = numbers(10, () => 0);
    for (let i = 0; i < 100_000; i++) {
      const drawn = random.below(10);
      counts[drawn] = (counts[drawn] as number) + 1;
    }
    // The chi-square statistic of ten equally likely ones: stats.chi2.ppf(0.999, 9) = 27.877
    const chiSquare = counts.reduce((sum, count) => sum + (count - 10_000) ** 2 / 10_000, 0);
    expect(counts).toHaveLength(10);
    expect(chiSquare).toBeLessThan(27.877);
  });

  it("below n are whole numbers from 0 to n - 1, however large n is", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 32 }), fc.integer(), (n, seed) => {
        const random = seededRandom(seed);
        for (let i = 0; i < 20; i++) {
          const drawn = random.below(n);
          expect(Number.isInteger(drawn) && drawn >= 0 && drawn < n).toBe(true);
        }
      }),
    );
  });
});

describe("the bootstrap interval of the mean", () => {
  const skewed = Float64Array.from(scattered(100), (x) => x ** 3 - 0.2);

  it.each([
    [0.95, 0.0010254, 0.1149828],
    [0.8, 0.01962, 0.0941956],
  ])("at level %d agrees with SciPy's to 0.001, a 29th of the standard error", (level, low, high) => {
    // d = np.array([(((i * 7919) % 1009) / 1009) ** 3 - 0.2 for i in range(100)]); stats.bootstrap((d,), np.mean,
    // method="percentile", n_resamples=1_000_000, confidence_level=level, rng=np.random.default_rng(s)), s = 1 and 2
    // averaged. With 100,000 resamples an end varies by 0.00025 (one standard deviation) at 0.95.
    const interval = bootstrapMeanInterval(skewed, { resamples: 100_000, level, seed: 11 });
    expect(Math.abs(interval[0] - low)).toBeLessThan(0.001);
    expect(Math.abs(interval[1] - high)).toBeLessThan(0.001);
  });

  it("of 30 ones among 100 agrees with the binomial distribution", () => {
    // stats.binom.ppf([0.025, 0.975, 0.1, 0.9], 100, 0.3) = 21, 39, 24, 36
    const deltas = Float64Array.from({ length: 100 }, (_, i) => (i < 30 ? 1 : 0));
    expect(bootstrapMeanInterval(deltas, { resamples: 50_000, seed: 3 })).toEqual([0.21, 0.39]);
    expect(bootstrapMeanInterval(deltas, { resamples: 50_000, level: 0.8, seed: 3 })).toEqual([0.24, 0.36]);
  });

  it("is the same for the same seed, and another for another", () => {
    const interval = bootstrapMeanInterval(skewed, { seed: 1 });
    expect(bootstrapMeanInterval(skewed, { seed: 1 })).toEqual(interval);
    expect(bootstrapMeanInterval(skewed, { seed: 2 })).not.toEqual(interval);
    expect(bootstrapMeanInterval(skewed, { seed: 1, resamples: 2_000, level: 0.95 })).toEqual(interval);
  });

  it("holds the true mean about as often as it says", () => {
    // 1,000 samples of 50 numbers, even from 0 to 1. With p = 0.95 the share varies by 0.007, and the percentile
    // interval is known to be short by about sqrt(49 / 50), which makes it 0.947.
    const random = seededRandom(2026);
    let [held, missedBelow] = [0, 0];
    for (let sample = 0; sample < 1_000; sample++) {
      const deltas = Float64Array.from({ length: 50 }, () => random.nextUint32() / 2 ** 32);
      const [low, high] = bootstrapMeanInterval(deltas, { resamples: 500, seed: sample });
      if (low <= 0.5 && 0.5 <= high) held++;
      else if (high < 0.5) missedBelow++;
    }
    expect(held).toBeGreaterThan(920);
    expect(held).toBeLessThan(970);
    expect(missedBelow).toBeGreaterThan(10);
    expect(1_000 - held - missedBelow).toBeGreaterThan(10);
  });

  it("of equal deltas is that number", () => {
    expect(bootstrapMeanInterval(Float64Array.of(0.1, 0.1, 0.1), { seed: 1 })).toEqual([0.1, 0.1]);
    expect(bootstrapMeanInterval(Float64Array.of(-2), { seed: 1 })).toEqual([-2, -2]);
  });

  it("refuses empty samples, zero draws and invalid levels", () => {
    const two = Float64Array.of(0, 1);
    expect(() => bootstrapMeanInterval(new Float64Array(), { seed: 1 })).toThrow(RangeError);
    for (const resamples of [0, 1.5, Number.NaN])
      expect(() => bootstrapMeanInterval(two, { resamples, seed: 1 })).toThrow(RangeError);
    for (const level of [0, 1, Number.NaN])
      expect(() => bootstrapMeanInterval(two, { level, seed: 1 })).toThrow(RangeError);
  });
});

describe("McNemar's exact test", () => {
  it("gives the published example", () => {
    // Fagerland, Lydersen and Laake 2013 (BMC Med Res Methodol 13:91): 6 and 16 discordant pairs; R's contingencytables
    // prints P = 0.052479 for it.
    expect(mcnemarExact(16, 6)).toBeCloseTo(0.052479, 6);
  });

  it.each([
    // stats.binomtest(min(b, c), b + c, 0.5).pvalue, and the same of statsmodels' mcnemar([[0, b], [c, 0]], exact=True)
    [16, 6, 0.052478790283203125],
    [7, 1, 0.0703125],
    [25, 2, 5.647540092468262e-6],
    [0, 5, 0.0625],
    [1, 0, 1],
    [5, 5, 1],
    [10, 9, 1],
    [600, 300, 8.196500619333493e-24],
    // The four below by whole numbers: Fraction(2 * sum(comb(n, i) for i in range(k + 1)), 2 ** n). SciPy is 1e-12 off.
    [121, 59, 4.434449263755176e-6],
    [1_000, 900, 0.02310884510890107],
    [5_100, 4_900, 0.04658552770494739],
    [30_000, 29_500, 0.040784942870716545],
  ])("of %d wins and %d losses is SciPy's", (wins, losses, expected) => {
    expect(relativeError(mcnemarExact(wins, losses), expected)).toBeLessThan(1e-12);
  });

  it("is right for millions", () => {
    // stats.binomtest(998_000, 1_998_000, 0.5).pvalue
    expect(relativeError(mcnemarExact(1_000_000, 998_000), 0.15729913779647348)).toBeLessThan(1e-10);
    expect(mcnemarExact(9_000, 1_000)).toBe(0);
  });

  it("without wins and losses, and with one more of either, is 1", () => {
    expect([mcnemarExact(0, 0), mcnemarExact(0, 1), mcnemarExact(500_000, 500_001)]).toEqual([1, 1, 1]);
  });

  it("is symmetric, a probability, and decreases as the counts differ more", () => {
    const count = fc.integer({ min: 0, max: 3_000 });
    fc.assert(
      fc.property(count, count, (wins, losses) => {
        const p = mcnemarExact(wins, losses);
        expect(p).toBe(mcnemarExact(losses, wins));
        expect(p).toBeGreaterThanOrEqual(0);
        expect(p).toBeLessThanOrEqual(1);
        if (wins > losses && losses > 0) expect(mcnemarExact(wins + 1, losses - 1)).toBeLessThanOrEqual(p);
      }),
    );
  });

  it("is the sum of the binomial's terms, for all counts up to 30 in all", () => {
    const choose = (n: number, k: number): number => (k === 0 ? 1 : (choose(n, k - 1) * (n - k + 1)) / k);
    for (let n = 0; n <= 30; n++)
      for (let wins = 0; wins <= n; wins++) {
        const terms = numbers(Math.min(wins, n - wins) + 1, (k) => choose(n, k));
        const expected = Math.min(1, (2 * terms.reduce((a, b) => a + b)) / 2 ** n);
        expect(relativeError(mcnemarExact(wins, n - wins), expected)).toBeLessThan(1e-14);
      }
  });

  it("refuses invalid counts", () => {
    for (const count of [-1, 0.5, Number.NaN, Infinity]) {
      expect(() => mcnemarExact(count, 1)).toThrow(RangeError);
      expect(() => mcnemarExact(1, count)).toThrow(RangeError);
    }
  });
});

describe("the normal tail", () => {
  it.each([
    // stats.norm.sf(z)
    [0, 0.5],
    [0.1, 0.460172162722971],
    [0.5, 0.3085375387259869],
    [1, 0.15865525393145707],
    [1.96, 0.024997895148220435],
    [2.5, 0.006209665325776132],
    [2.999, 0.0013543365337271057],
    [3, 0.0013498980316300933],
    [3.5, 0.00023262907903552502],
    [4, 3.167124183311986e-5],
    [6, 9.865876450376946e-10],
    [10, 7.61985302416047e-24],
    [20, 2.7536241186061556e-89],
    [37, 5.7255712225239266e-300],
  ])("beyond %d is SciPy's", (z, expected) => {
    expect(relativeError(normalTail(z), expected)).toBeLessThan(1e-12);
  });

  it("ends at 0", () => {
    expect([normalTail(39), normalTail(1e6)]).toEqual([0, 0]);
  });
});

describe("Wilcoxon's signed-rank test", () => {
  /** `[((i * 37) % 101 + 1) * (-1 if i % 3 == 0 else 1) / 10 for i in range(n)]`: no two of the same size. */
  const distinct = (n: number) => numbers(n, (i) => ((((i * 37) % 101) + 1) * (i % 3 === 0 ? -1 : 1)) / 10);

  it("gives the published examples", () => {
    // Darwin's maize (Cureton 1967; the example of scipy.stats.wilcoxon).
    const maize = [6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75];
    expect(wilcoxon(maize)).toEqual({ statistic: 24, p: 0.041259765625, n: 15, method: "exact" });
    // Hollander and Wolfe's depression scores (the example of R's wilcox.test: V = 40, p = 0.01953 to one side).
    const scores = [0.952, -0.147, 1.022, 0.43, 0.62, 0.59, 0.49, -0.08, 0.01];
    expect(wilcoxon(scores)).toEqual({ statistic: 5, p: 0.0390625, n: 9, method: "exact" });
    // https://en.wikipedia.org/wiki/Wilcoxon_signed-rank_test: a zero and two equal ones, W = T+ - T- = 9.
    expect(wilcoxon([15, -7, 5, 20, 0, -9, 17, -12, 5, -10])).toMatchObject({ statistic: 18, n: 9 });
  });

  const ties = [1, 1, 2, -2, 3, 3, 3, -1, 4, 5, -2, 2, 6];
  const many = numbers(10_000, (i) => ((i * 7919) % 201) - 97).filter((d) => d !== 0);
  const ordinal = numbers(400, (i) => ((i * i + 3 * i) % 5) - 1);

  it.each([
    // stats.wilcoxon(d), that is method="auto", correction=False, zero_method="wilcox"
    ["up to 50 of different sizes", distinct(50), 387, 0.014890897756602683, "exact"],
    ["51 of different sizes", distinct(51), 397, 0.01265468244596645, "asymptotic"],
    ["13 with equal ones", ties, 13, 0.022216796875, "exact"],
    ["14 with equal ones", [...ties, -4], 24.5, 0.07739155763790306, "asymptotic"],
    ["20 of different sizes", distinct(20), 49, 0.03623390197753906, "exact"],
    ["9 with two equal ones", [15, -7, 5, 20, -9, 17, -12, 5, -10], 18, 0.6328125, "exact"],
    ["9,950, most of them equal to others", many, 23267294.5, 2.1538711351668457e-7, "asymptotic"],
    ["400 of four sizes", ordinal, 12880, 5.164826345856361e-33, "asymptotic"],
    ["five on one side", [1, 2, 3, 4, 5], 0, 0.0625, "exact"],
    ["one", [2.5], 0, 1, "exact"],
  ])("of %s is SciPy's", (_, differences, statistic, p, method) => {
    const result = wilcoxon(differences);
    expect(result).toMatchObject({ statistic, n: differences.length, method });
    expect(relativeError(result.p, p)).toBeLessThan(1e-12);
  });

  it("drops zeros and missing values", () => {
    const differences = [0, ...distinct(20), -0, Number.NaN, 0];
    expect(wilcoxon(differences)).toEqual(wilcoxon(distinct(20)));
    expect(wilcoxon([])).toEqual({ statistic: 0, p: 1, n: 0, method: "exact" });
    expect(wilcoxon([0, 0])).toEqual({ statistic: 0, p: 1, n: 0, method: "exact" });
  });

  it("does not reorder its input", () => {
    const differences = Float64Array.of(3, -1, 2);
    wilcoxon(differences);
    expect([...differences]).toEqual([3, -1, 2]);
  });

  it("is exact: all 2^n signs of ranks, shared ones too, counted one by one", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -4, max: 4 }), { minLength: 1, maxLength: 9 }), (given) => {
        const differences = given.map((d) => d || 5);
        const sizes = differences.map(Math.abs);
        const ranks = sizes.map(
          (size) => (sizes.filter((s) => s < size).length + sizes.filter((s) => s <= size).length + 1) / 2,
        );
        const plus = (isPlus: (i: number) => boolean) => ranks.reduce((sum, r, i) => sum + (isPlus(i) ? r : 0), 0);
        const total = plus(() => true);
        const statistic = Math.min(
          plus((i) => (differences[i] as number) > 0),
          plus((i) => (differences[i] as number) < 0),
        );
        let asFar = 0;
        for (let signs = 0; signs < 2 ** ranks.length; signs++) {
          const sum = plus((i) => ((signs >> i) & 1) === 1);
          if (sum <= statistic || total - sum <= statistic) asFar++;
        }
        expect(wilcoxon(differences)).toMatchObject({ statistic, p: asFar / 2 ** ranks.length });
      }),
    );
  });

  it("is the same whichever way the differences are taken, and in any unit", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -1_000, max: 1_000 }), { maxLength: 80 }), (differences) => {
        const result = wilcoxon(differences);
        expect(wilcoxon(differences.map((d) => -d))).toEqual(result);
        expect(wilcoxon(differences.map((d) => d * 1024))).toEqual(result);
        expect(result.p).toBeGreaterThanOrEqual(0);
        expect(result.p).toBeLessThanOrEqual(1);
      }),
    );
  });
});

describe("Holm's adjustment", () => {
  const close = (adjusted: (number | null)[], expected: (number | null)[]) => {
    expect(adjusted).toHaveLength(expected.length);
    for (const [i, p] of expected.entries()) {
      if (p === null) expect(adjusted[i]).toBeNull();
      else expect(adjusted[i]).toBeCloseTo(p, 14);
    }
  };

  it("gives the published example", () => {
    // https://en.wikipedia.org/wiki/Holm-Bonferroni_method: only those of 0.01 and 0.005 stay below 0.05.
    close(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02]);
  });

  it("gives statsmodels' values", () => {
    // multipletests([0.01, 0.02, 0.22, 0.09, 0.04, 0.14, 0.5, 0.9, 0.001, 1], method="holm")[1]
    const p = [0.01, 0.02, 0.22, 0.09, 0.04, 0.14, 0.5, 0.9, 0.001, 1];
    close(holm(p), [0.09, 0.16, 0.88, 0.54, 0.28, 0.7, 1, 1, 0.01, 1]);
  });

  it("neither changes nor counts what was not tested", () => {
    close(holm([null, 0.01, null, 0.04]), [null, 0.02, null, 0.04]);
    expect(holm([null])).toEqual([null]);
    expect(holm([])).toEqual([]);
    expect(holm([0.3])).toEqual([0.3]);
  });

  it("refuses invalid p-values", () => {
    for (const p of [-0.01, 1.01, Number.NaN]) expect(() => holm([0.5, p])).toThrow(RangeError);
  });

  it("lies between the value and Bonferroni's, keeps the order, and does not depend on the position of a value", () => {
    const p = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(fc.array(p, { minLength: 1, maxLength: 20 }), (given) => {
        const adjusted = holm(given) as number[];
        for (const [i, before] of given.entries()) {
          const after = adjusted[i] as number;
          expect(after).toBeGreaterThanOrEqual(before);
          expect(after).toBeLessThanOrEqual(Math.min(1, before * given.length));
          for (const [j, other] of given.entries())
            if (before <= other) expect(after).toBeLessThanOrEqual(adjusted[j] as number);
        }
        expect(holm(given.toReversed())).toEqual(adjusted.toReversed());
      }),
    );
  });
});

describe("comparing two experiments", () => {
  const none = Number.NaN;
  const vector = (...values: number[]) => Float64Array.from(values);

  it("counts wins and losses over the examples that both have", () => {
    const baseline = vector(1, 0, 1, none, 0, 1, none, 0);
    const other = vector(1, 1, 0, 1, 1, none, none, 1);
    const [ci_low, ci_high] = bootstrapMeanInterval(Float64Array.of(0, 1, -1, 1, 1), { seed: 1 });
    expect(comparePair(baseline, other)).toEqual({
      n_paired: 5,
      only_comparison: 1,
      only_baseline: 1,
      mean_baseline: 0.4,
      mean_comparison: 0.8,
      mean_delta: 0.4,
      ci_low,
      ci_high,
      wins: 3,
      ties: 1,
      losses: 1,
      test: "mcnemar",
      p_value: 0.625,
    });
  });

  it("gives the published example of McNemar's test", () => {
    // Fagerland et al. 2013: 59 both right, 6 only before, 16 only after, 80 neither.
    const fill = (counts: [number, number][]) => Float64Array.from(counts.flatMap(([n, v]) => numbers(n, () => v)));
    const before = fill([
      [65, 1],
      [96, 0],
    ]);
    const after = fill([
      [59, 1],
      [6, 0],
      [16, 1],
      [80, 0],
    ]);
    const compared = comparePair(before, after);
    expect(compared).toMatchObject({ n_paired: 161, wins: 16, ties: 139, losses: 6, test: "mcnemar" });
    expect(compared.p_value).toBeCloseTo(0.052479, 6);
    expect(relativeError(compared.mean_delta as number, 10 / 161)).toBeLessThan(1e-15);
    expect(compared.ci_low).toBeLessThan(10 / 161);
    expect(compared.ci_high).toBeGreaterThan(10 / 161);
  });

  it("uses Wilcoxon's test as soon as a score of either is neither 0 nor 1", () => {
    const zeros = new Float64Array(15);
    const maize = vector(6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75);
    expect(comparePair(zeros, maize)).toMatchObject({ wins: 13, losses: 2, test: "wilcoxon", p_value: 0.041259765625 });
    expect(comparePair(maize, zeros)).toMatchObject({ wins: 2, losses: 13, test: "wilcoxon", p_value: 0.041259765625 });
    expect(comparePair(vector(0, 1), vector(1, 0.5)).test).toBe("wilcoxon");
    expect(comparePair(vector(0, 0.5), vector(1, 1)).test).toBe("wilcoxon");
    // What is not paired does not count.
    expect(comparePair(vector(0, 0.5), vector(1, none)).test).toBe("mcnemar");
  });

  it("swaps wins and losses when lower is better, and nothing else", () => {
    const [baseline, other] = [vector(3, 2, 5, 4), vector(1, 2, 6, 1)];
    const higher = comparePair(baseline, other);
    expect(higher).toMatchObject({ wins: 1, ties: 1, losses: 2, mean_delta: -1 });
    expect(comparePair(baseline, other, { lower_is_better: true })).toEqual({ ...higher, wins: 2, losses: 1 });
  });

  it("counts only differences of the threshold or more, and tests all of them", () => {
    const [baseline, other] = [vector(0, 0, 0, 0, 0), vector(0, 0.25, 0.5, -0.5, 2)];
    const all = comparePair(baseline, other);
    expect(all).toMatchObject({ wins: 3, ties: 1, losses: 1 });
    expect(comparePair(baseline, other, { threshold: 0.5 })).toEqual({ ...all, wins: 2, ties: 2 });
    expect(comparePair(baseline, other, { threshold: 0.75 })).toEqual({ ...all, wins: 1, ties: 4, losses: 0 });
    expect(comparePair(vector(0, 0, 0), vector(1, 1, 1), { threshold: 2 })).toMatchObject({ ties: 3, p_value: 0.25 });
    for (const threshold of [-1, none])
      expect(() => comparePair(baseline, other, { threshold })).toThrow("The threshold must be at least 0");
  });

  it("returns null for unknown values", () => {
    const nothing = { mean_baseline: null, mean_comparison: null, mean_delta: null, ci_low: null, ci_high: null };
    const noMoves = { wins: 0, ties: 0, losses: 0, test: null, p_value: null };
    expect(comparePair(vector(), vector())).toEqual({
      n_paired: 0,
      only_comparison: 0,
      only_baseline: 0,
      ...nothing,
      ...noMoves,
    });
    expect(comparePair(vector(none, 1, none), vector(1, none, none))).toEqual({
      n_paired: 0,
      only_comparison: 1,
      only_baseline: 1,
      ...nothing,
      ...noMoves,
    });
    expect(comparePair(vector(1), vector(0.5))).toMatchObject({
      n_paired: 1,
      mean_delta: -0.5,
      ci_low: null,
      p_value: 1,
    });
    expect(comparePair(vector(1, 0), vector(0.5, 0)).ci_low).not.toBeNull();
  });

  it("finds nothing where nothing changed", () => {
    for (const same of [vector(1, 0, 1), vector(0.1, 0.2, 0.3)])
      expect(comparePair(same, same)).toMatchObject({ mean_delta: 0, ci_low: 0, ci_high: 0, ties: 3, p_value: 1 });
    expect(comparePair(vector(1, 0), vector(1, 0)).test).toBe("mcnemar");
    expect(comparePair(vector(0.1), vector(0.1)).test).toBe("wilcoxon");
  });

  it("counts an example that one of them does not reach as missing there", () => {
    expect(comparePair(vector(1, 0), vector(1, 0, 1, none, 1))).toMatchObject({ n_paired: 2, only_comparison: 2 });
    expect(comparePair(vector(1, 0, 1, none, 1), vector(1, 0))).toMatchObject({ n_paired: 2, only_baseline: 2 });
  });

  it("treats numbers that are not finite as missing", () => {
    // 1e999 is a number in JSON, but read as Infinity.
    const huge = JSON.parse("1e999") as number;
    const compared = comparePair(vector(huge, 1, 0.5, -huge), vector(1, huge, 0.25, -huge));
    expect(compared).toMatchObject({ n_paired: 1, only_comparison: 1, only_baseline: 1, mean_delta: -0.25 });
  });

  it("passes its options to the bootstrap", () => {
    const [baseline, other] = [Float64Array.from(scattered(40)), Float64Array.from(scattered(80)).subarray(40)];
    const deltas = Float64Array.from(other, (value, i) => value - (baseline[i] as number));
    const options = { seed: 9, resamples: 100, level: 0.5 };
    const { ci_low, ci_high } = comparePair(baseline, other, options);
    expect([ci_low, ci_high]).toEqual(bootstrapMeanInterval(deltas, options));
    expect(comparePair(baseline, other)).toEqual(comparePair(baseline, other, { seed: 1 }));
  });

  it("is reversed when the two experiments are exchanged", () => {
    const score = fc.option(fc.integer({ min: 0, max: 3 }), { nil: none });
    fc.assert(
      fc.property(fc.array(fc.tuple(score, score), { maxLength: 40 }), (pairs) => {
        const [baseline, other] = [0, 1].map((side) => Float64Array.from(pairs, (pair) => pair[side] as number));
        const there = comparePair(baseline as Float64Array, other as Float64Array, { resamples: 20 });
        const back = comparePair(other as Float64Array, baseline as Float64Array, { resamples: 20 });
        expect(back).toMatchObject({
          n_paired: there.n_paired,
          only_comparison: there.only_baseline,
          only_baseline: there.only_comparison,
          wins: there.losses,
          ties: there.ties,
          losses: there.wins,
          test: there.test,
          p_value: there.p_value,
        });
        expect(there.wins + there.ties + there.losses).toBe(there.n_paired);
      }),
    );
  });

  describe("of scores that binary numbers do not represent exactly", () => {
    /** Scores of 0 to `parts` parts of one, as decimals (1,000 parts) or means of repetitions (3 parts). */
    const scores = fc.integer({ min: 2, max: 1_000 }).chain((parts) =>
      fc.record({
        parts: fc.constant(parts),
        pairs: fc.array(fc.tuple(fc.integer({ min: 0, max: parts }), fc.integer({ min: 0, max: parts })), {
          minLength: 1,
          maxLength: 40,
        }),
        step: fc.integer({ min: 1, max: parts }),
      }),
    );

    it("ranks the differences as if they were exact", () => {
      expect(comparePair(vector(0.2, 0.3, 0.6, 0), vector(0.3, 0.4, 0.7, 0.4)).p_value).toBe(wilcoxon([1, 1, 1, 4]).p);
      fc.assert(
        fc.property(scores, ({ parts, pairs }) => {
          const from = Float64Array.from(pairs, ([a]) => a / parts);
          const to = Float64Array.from(pairs, ([, b]) => b / parts);
          const { test, p_value } = comparePair(from, to, { resamples: 1 });
          fc.pre(test === "wilcoxon");
          expect(p_value).toBe(wilcoxon(pairs.map(([a, b]) => b - a)).p);
        }),
      );
    });

    it("lets 0.9 - 0.8 reach a threshold of 0.1", () => {
      // It is 0.09999999999999998.
      expect(comparePair(vector(0.8), vector(0.9), { threshold: 0.1 }).wins).toBe(1);
      expect(comparePair(vector(0.8), vector(0.9), { threshold: 0.100001 }).wins).toBe(0);
      fc.assert(
        fc.property(scores, ({ parts, pairs, step }) => {
          const from = Float64Array.from(pairs, ([a]) => a / parts);
          const to = Float64Array.from(pairs, ([, b]) => b / parts);
          const { wins, losses } = comparePair(from, to, { threshold: step / parts, resamples: 1 });
          expect(wins).toBe(pairs.filter(([a, b]) => b - a >= step).length);
          expect(losses).toBe(pairs.filter(([a, b]) => a - b >= step).length);
        }),
      );
    });

    it("distinguishes values that differ by more than rounding", () => {
      // Steps of a millionth of a millionth: next to the large ones they keep their order and their signs.
      const steps = [1, -2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14].map((step) => step / 1e12);
      const compared = comparePair(vector(...steps.map(() => 0), 64), vector(...steps, 60));
      expect(compared).toMatchObject({ wins: 13, losses: 2, p_value: wilcoxon([...steps, -4]).p });
    });
  });

  it("compares 100,000 examples", () => {
    const n = 100_000;
    const baseline = Float64Array.from({ length: n }, (_, i) => (i % 2 === 0 ? 1 : 0));
    const other = Float64Array.from({ length: n }, (_, i) => (i % 50 === 1 ? 1 : (baseline[i] as number)));
    expect(comparePair(baseline, other, { resamples: 50 })).toMatchObject({
      n_paired: n,
      wins: 2_000,
      ties: 98_000,
      losses: 0,
      mean_delta: 0.02,
      test: "mcnemar",
      p_value: 0, // 2^-1999
    });
  });
});
