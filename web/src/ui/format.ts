/** Formatting of numbers and times. A missing value is formatted as a dash, never as 0. */

export const DASH = "–";
const MINUS = "−";

type Maybe = number | null | undefined;
const isMissing = (value: Maybe): value is null | undefined =>
  value === null || value === undefined || Number.isNaN(value);

const withMinus = (text: string) => text.replace("-", MINUS);

const THREE_DIGITS = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3, minimumSignificantDigits: 3 });
const INTEGER = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const ONE_DECIMAL = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });

/**
 * Formats a number with three significant digits: `0.812`, `12.3`. Integers keep all digits, and numbers from 1,000 are rounded to
 * integers: `1`, `1,234`.
 */
export function number(value: Maybe): string {
  if (isMissing(value)) return DASH;
  if (Number.isInteger(value)) return withMinus(INTEGER.format(value));
  if (Math.abs(value) >= 1_000) return withMinus(INTEGER.format(value));
  if (Math.abs(value) < 1e-4) return withMinus(value.toExponential(2));
  return withMinus(THREE_DIGITS.format(value));
}

const TWO_DIGITS = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 2 });

/** Formats a number below 100 with at most two significant digits, and other numbers like {@link number}: `0.57`, `12`. */
export const rough = (value: Maybe): string =>
  isMissing(value) ? DASH : Math.abs(value) < 100 ? withMinus(TWO_DIGITS.format(value)) : number(value);

/** Formats a number with a fixed number of decimals, for table columns: `−0.020`. */
export const fixed = (value: Maybe, decimals: number): string =>
  isMissing(value) ? DASH : withMinus(value.toFixed(decimals));

/**
 * Returns the number of decimals with which all values of a column have at least three significant digits at the largest value. Undefined
 * if all values are integers above 1, such as ratings.
 */
export function decimalsFor(values: readonly Maybe[]): number | undefined {
  const known = values.filter((value): value is number => !isMissing(value));
  const max = Math.max(0, ...known.map(Math.abs));
  if (known.length === 0 || (max > 1 && known.every(Number.isInteger))) return undefined;
  return max >= 100 ? 0 : max >= 10 ? 1 : max > 1 ? 2 : max > 0.001 ? 3 : undefined;
}

export const count = (value: Maybe): string => (isMissing(value) ? DASH : INTEGER.format(value));

/** Formats a difference with its sign: `+0.035`, `−0.022`, `±0`. */
export function delta(value: Maybe, format: (value: Maybe) => string = number): string {
  if (isMissing(value)) return DASH;
  if (value === 0) return "±0";
  return `${value > 0 ? "+" : MINUS}${format(Math.abs(value))}`;
}

/** Formats a fraction as a percentage: `0.04 %`, `12.3 %`, `100 %`. Only 0 is `0 %`, and only 1 is `100 %`. */
export function percent(share: Maybe): string {
  if (isMissing(share)) return DASH;
  if (share >= 0.9995 && share < 1) return ">99.9 %";
  return `${withMinus((Math.abs(share) < 0.01 ? TWO_DIGITS : ONE_DECIMAL).format(share * 100))} %`;
}

/** Formats the difference between two fractions in percentage points: `1.5 pp`. */
export const percentagePoints = (share: Maybe): string => percent(share).replace("%", "pp");

/** Formats a duration: `320 ms`, `1.24 s`, `2 min 5 s`, `3 h 12 min`. */
export function duration(ms: Maybe): string {
  if (isMissing(ms)) return DASH;
  if (ms < 0) return `${MINUS}${duration(-ms)}`;
  if (ms < 1) return `${number(ms)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9_995) return `${(ms / 1_000).toFixed(2)} s`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return pair(Math.floor(seconds / 60), "min", seconds % 60, "s");
  const minutes = Math.round(seconds / 60);
  if (minutes < 1_440) return pair(Math.floor(minutes / 60), "h", minutes % 60, "min");
  const hours = Math.round(minutes / 60);
  return pair(Math.floor(hours / 24), "d", hours % 24, "h");
}

const pair = (large: number, unit: string, small: number, smallUnit: string) =>
  small === 0 ? `${large} ${unit}` : `${large} ${unit} ${small} ${smallUnit}`;

const BYTE_UNITS = ["B", "KB", "MB", "GB", "TB"];

/** Formats a duration that is given in seconds, like {@link duration}. */
export const seconds = (value: Maybe): string => duration(isMissing(value) ? value : value * 1_000);

/** Formats a size: `512 B`, `1.23 MB`. 1 KB is 1,000 bytes. */
export function bytes(value: Maybe): string {
  if (isMissing(value)) return DASH;
  const power = value < 1 ? 0 : Math.min(Math.floor(Math.log10(value) / 3), BYTE_UNITS.length - 1);
  return `${number(value / 1_000 ** power)} ${BYTE_UNITS[power]}`;
}

/** Formats a cost in USD: `$0.00012`, `$0.258`, `$1.25`, `<$0.0001`. */
export function cost(usd: Maybe): string {
  if (isMissing(usd)) return DASH;
  if (usd > 0 && usd < 1e-4) return "<$0.0001";
  return `$${usd >= 1 ? MONEY.format(usd) : usd >= 0.01 ? number(usd) : rough(usd)}`;
}

const MONEY = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

const STEPS: readonly (readonly [limit_s: number, size_s: number, unit: Intl.RelativeTimeFormatUnit])[] = [
  [60, 1, "second"],
  [3_600, 60, "minute"],
  [86_400, 3_600, "hour"],
  [2_592_000, 86_400, "day"],
  [31_536_000, 2_592_000, "month"],
  [Number.POSITIVE_INFINITY, 31_536_000, "year"],
];
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });

/** Formats a time relative to now: `just now`, `5 min. ago`, `yesterday`, `in 2 hr.` */
export function relativeTime(time: Date, now: Date): string {
  const seconds = (time.getTime() - now.getTime()) / 1_000;
  if (Math.abs(seconds) < 10) return "just now";
  const [, size_s, unit] = STEPS.find(([limit_s]) => Math.abs(seconds) < limit_s) as (typeof STEPS)[number];
  return RELATIVE.format(Math.trunc(seconds / size_s), unit);
}

const EXACT_TIME = new Intl.DateTimeFormat("en-CA", {
  dateStyle: "medium",
  timeStyle: "medium",
  hourCycle: "h23",
});

/** Formats a time to the second, in the browser's time zone. */
export const exactTime = (time: Date): string => EXACT_TIME.format(time);

/** Capitalizes the first letter, for labels. */
export const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Quotes a word for a POSIX shell. */
export const shellQuote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;
