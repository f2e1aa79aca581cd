export { microsecondsOf } from "../contract/iso-time.ts";

const DAY_MS = 86_400_000;

/** Formatted dates by day since the epoch, with a trailing T. Formatting takes 12 times as long as the lookup. */
const dates = new Map<number, string>();
const MAX_DATES = 1000;

const TWO = Array.from({ length: 60 }, (_, n) => String(n).padStart(2, "0"));
const three = (n: number): string => (n < 10 ? `00${n}` : n < 100 ? `0${n}` : String(n));

/** Formats a time in ISO 8601 with `+00:00`, and microseconds if not zero. With `Date`, this took 8 % of the time of a page of runs. */
export function isoOfMicroseconds(us: number): string {
  const ms = Math.floor(us / 1000);
  const micros = us - ms * 1000;
  const day = Math.floor(ms / DAY_MS);
  const of_day = ms - day * DAY_MS;
  const seconds = Math.floor(of_day / 1000);
  const minutes = Math.floor(seconds / 60);
  const time = `${TWO[Math.floor(minutes / 60)]}:${TWO[minutes % 60]}:${TWO[seconds % 60]}.${three(of_day % 1000)}`;
  return `${dateOf(day)}${time}${micros === 0 ? "" : three(micros)}+00:00`;
}

function dateOf(day: number): string {
  const known = dates.get(day);
  if (known !== undefined) return known;
  if (dates.size === MAX_DATES) dates.clear();
  const date = new Date(day * DAY_MS).toISOString().slice(0, -"00:00:00.000Z".length);
  dates.set(day, date);
  return date;
}

export const isoOfMilliseconds = (ms: number): string => isoOfMicroseconds(ms * 1000);
