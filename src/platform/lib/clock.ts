import { setTimeout as sleep } from "node:timers/promises";

/** Where times come from. Injected, so that tests can move time without waiting for it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** Follows the system's clock forward. When that is set back, this one goes on from where it was, as fast as time passes. */
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

/** Ends after so many milliseconds, or when the signal is aborted; it never fails. Injected for the same reason. */
export type Wait = (ms: number, signal: AbortSignal) => Promise<void>;

export const realWait: Wait = (ms, signal) => sleep(ms, undefined, { signal, ref: false }).catch(() => undefined);
