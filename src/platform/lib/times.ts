const DAY_MS = 86_400_000;

/** Dates of days since the epoch, with the T behind them. More are begun anew: the times of an answer are of few days. */
const dates = new Map<number, string>();
const MAX_DATES = 1000;

const TWO = Array.from({ length: 60 }, (_, n) => String(n).padStart(2, "0"));
const three = (n: number): string => (n < 10 ? `00${n}` : n < 100 ? `0${n}` : String(n));

/**
 * A moment as the wire writes it: ISO 8601 with `+00:00`, with microseconds only where there are some. A page of 500 runs has
 * 6,000 of them, and a `Date` for each took 8 % of its time.
 */
export function isoOfMicroseconds(us: number): string {
  const ms = Math.floor(us / 1000);
  const rest = us - ms * 1000;
  const day = Math.floor(ms / DAY_MS);
  const of_day = ms - day * DAY_MS;
  const seconds = Math.floor(of_day / 1000);
  const minutes = Math.floor(seconds / 60);
  const time = `${TWO[Math.floor(minutes / 60)]}:${TWO[minutes % 60]}:${TWO[seconds % 60]}.${three(of_day % 1000)}`;
  return `${dateOf(day)}${time}${rest === 0 ? "" : three(rest)}+00:00`;
}

function dateOf(day: number): string {
  const known = dates.get(day);
  if (known !== undefined) return known;
  if (dates.size === MAX_DATES) dates.clear();
  const date = new Date(day * DAY_MS).toISOString().slice(0, -"00:00:00.000Z".length);
  dates.set(day, date);
  return date;
}

/** The same for milliseconds since the epoch. */
export const isoOfMilliseconds = (ms: number): string => isoOfMicroseconds(ms * 1000);

const TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s*(Z|[+-]\d\d(?::?\d\d)?)?)?$/i;

/** Years outside of these do not fit where times are kept or written. */
const EARLIEST_US = Date.UTC(1, 0, 1) * 1000;
const LATEST_US = Date.UTC(2250, 0, 1) * 1000;

/**
 * Microseconds since the epoch of an ISO 8601 time; undefined for anything else. Without an offset it is UTC: the
 * official example of an upload writes `2024-08-03T00:12:39`.
 */
export function microsecondsOf(text: string): number | undefined {
  const match = TIME.exec(text.trim());
  if (!match) return undefined;
  const [, date, minutes = "00:00", seconds = "00", fraction = "", zone = "Z"] = match;
  const offset = zone.toUpperCase() === "Z" ? "Z" : zone.replace(/^(...):?(\d\d)?$/, (_, h, m = "00") => `${h}:${m}`);
  const whole_ms = Date.parse(`${date}T${minutes}:${seconds}${offset}`);
  // Date.parse takes 2024-02-31 for March 2.
  const day = Date.parse(`${date}T00:00:00Z`);
  if (Number.isNaN(whole_ms) || Number.isNaN(day) || new Date(day).toISOString().slice(0, 10) !== date)
    return undefined;
  const us = whole_ms * 1000 + Number(fraction.padEnd(6, "0").slice(0, 6));
  return us >= EARLIEST_US && us <= LATEST_US ? us : undefined;
}
