import { setTimeout as sleep } from "node:timers/promises";

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** Returns a clock that follows the system clock, but never goes back. While the system clock is behind, the monotonic clock is used. */
export function steadyClock(): Clock {
  let [wall, elapsed] = [Date.now(), performance.now()];
  return {
    now() {
      const [system, steady] = [Date.now(), wall + Math.floor(performance.now() - elapsed)];
      if (system <= steady) return steady;
      [wall, elapsed] = [system, performance.now()];
      return system;
    },
  };
}

/** Resolves after `ms` milliseconds or when the signal is aborted. It never rejects. */
export type Wait = (ms: number, signal: AbortSignal) => Promise<void>;

export const realWait: Wait = (ms, signal) => sleep(ms, undefined, { signal, ref: false }).catch(() => undefined);
