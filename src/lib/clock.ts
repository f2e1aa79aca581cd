import { setTimeout as sleep } from "node:timers/promises";

/** Where times come from. Injected, so that tests can move time without waiting for it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** A point in time as the wire shows it: ISO 8601 with an explicit UTC offset. */
export function isoTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, -1)}+00:00`;
}

/** Ends after so many milliseconds, or when the signal is aborted; it never fails. Injected for the same reason. */
export type Wait = (ms: number, signal: AbortSignal) => Promise<void>;

export const realWait: Wait = (ms, signal) => sleep(ms, undefined, { signal, ref: false }).catch(() => undefined);
