/** This file imports nothing, so that the web app can use its values. */

const TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s*(Z|[+-]\d\d(?::?\d\d)?)?)?$/i;

/** Accepted times are from 1901 to 2250. In this range, microseconds are safe integers. */
export const EARLIEST_MS = Date.UTC(1901, 0, 1);
export const LATEST_MS = Date.UTC(2250, 0, 1);

/** Returns undefined if the text is not ISO 8601 or out of range. A time without an offset is UTC, as in the official upload example. */
export function microsecondsOf(text: string): number | undefined {
  const match = TIME.exec(text.trim());
  if (!match) return undefined;
  const [, date, minutes = "00:00", seconds = "00", fraction = "", zone = "Z"] = match;
  const offset = zone.toUpperCase() === "Z" ? "Z" : zone.replace(/^(...):?(\d\d)?$/, (_, h, m = "00") => `${h}:${m}`);
  const whole_ms = Date.parse(`${date}T${minutes}:${seconds}${offset}`);
  // Date.parse reads 2024-02-31 as March 2.
  const day = Date.parse(`${date}T00:00:00Z`);
  if (Number.isNaN(whole_ms) || Number.isNaN(day) || new Date(day).toISOString().slice(0, 10) !== date)
    return undefined;
  const us = whole_ms * 1000 + Number(fraction.padEnd(6, "0").slice(0, 6));
  return us >= EARLIEST_MS * 1000 && us <= LATEST_MS * 1000 ? us : undefined;
}
