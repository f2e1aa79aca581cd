import type { PairComparison } from "../../../../../src/experiments/contract/comparison.ts";
import { DASH, delta, fixed, number } from "../../../ui/format.ts";

/** As many decimals as tell the ends of the interval apart, to a tenth of its width. */
function decimalsOf({ ci_low, ci_high }: PairComparison): number {
  const width = ci_low === null || ci_high === null ? 0 : ci_high - ci_low;
  return width > 0 ? Math.min(10, Math.max(0, 1 - Math.floor(Math.log10(width)))) : 3;
}

/** `.035` instead of `0.035`; `10.5` stays. */
export const short = (text: string) => text.replaceAll(/(?<!\d)0\./g, ".").replace(", ", ",");

/** With the decimals of the interval, once there is one. */
export function deltaText(difference: PairComparison, isWhole: boolean, compact: boolean): string {
  const format = (size: number | null | undefined) => (isWhole ? fixed(size, decimalsOf(difference)) : number(size));
  const text = delta(difference.mean_delta, format);
  return compact ? short(text) : text;
}

/** `[0.012, 0.058]`, in a narrow column `[.012, .058]`. */
export function intervalText(difference: PairComparison, compact: boolean): string {
  const { ci_low, ci_high } = difference;
  if (ci_low === null || ci_high === null) return DASH;
  const text = (end: number) => fixed(end, decimalsOf(difference));
  const written = `[${text(ci_low)}, ${text(ci_high)}]`;
  return compact ? short(written) : written;
}

/** `p 0.02`, `p <0.001`. */
export const pText = (p: number): string => `p ${p < 0.001 ? "<0.001" : p.toPrecision(1)}`;
