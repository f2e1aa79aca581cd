import type { PairComparison } from "../../../../../src/experiments/contract/comparison.ts";
import { DASH, delta, fixed, number } from "../../../ui/format.ts";

/** Returns the number of decimals that shows a tenth of the confidence interval's width. */
function decimalsOf({ ci_low, ci_high }: PairComparison): number {
  const width = ci_low === null || ci_high === null ? 0 : ci_high - ci_low;
  return width > 0 ? Math.min(10, Math.max(0, 1 - Math.floor(Math.log10(width)))) : 3;
}

/** Removes leading zeros and the space in an interval: `[0.012, 0.058]` becomes `[.012,.058]`, and `10.5` is unchanged. */
export const withoutLeadingZeros = (text: string) => text.replaceAll(/(?<!\d)0\./g, ".").replace(", ", ",");

/** Formats a difference. Once confidence intervals have been computed, the number of decimals matches the interval. */
export function deltaText(difference: PairComparison, isTested: boolean, compact: boolean): string {
  const format = (size: number | null | undefined) => (isTested ? fixed(size, decimalsOf(difference)) : number(size));
  const text = delta(difference.mean_delta, format);
  return compact ? withoutLeadingZeros(text) : text;
}

/** Formats a confidence interval as `[0.012, 0.058]`, or as `[.012,.058]` in a narrow column. */
export function intervalText(difference: PairComparison, compact: boolean): string {
  const { ci_low, ci_high } = difference;
  if (ci_low === null || ci_high === null) return DASH;
  const text = (end: number) => fixed(end, decimalsOf(difference));
  const bounds = `[${text(ci_low)}, ${text(ci_high)}]`;
  return compact ? withoutLeadingZeros(bounds) : bounds;
}

/** Formats a p-value as `p 0.02` or `p <0.001`. */
export const pText = (p: number): string => `p ${p < 0.001 ? "<0.001" : p.toPrecision(1)}`;
