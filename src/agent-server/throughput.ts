import { isoOfMilliseconds } from "../platform/lib/times.ts";
import type { RunMinute } from "./contract/app-runs.ts";
import type { RunCount } from "./storage/run-overview.ts";

const MINUTE_MS = 60_000;
const MINUTES = 60;

interface Counted {
  /** In milliseconds since the epoch. */
  now: number;
  /** Runs that have not ended. */
  active: readonly RunCount[];
  /** Runs that ended within the last hour. */
  ended: readonly RunCount[];
  /** More have ended than were counted: what is missing ended in the first minute that is counted, or before. */
  isCut: boolean;
}

/**
 * Minute by minute, the oldest first, up to the one that is not over yet. How many wait and run is known of now; it is
 * reckoned back from there, minute by minute.
 */
export function throughput({ now, active, ended, isCut }: Counted): RunMinute[] {
  const last = Math.floor(now / MINUTE_MS);
  const whole = isCut ? Math.min(...ended.map((run) => run.ended as number)) + 1 : 0;
  const first = Math.max(last - MINUTES + 1, whole);
  const lives = [...active, ...ended];
  const during = (minute: number, moment: (life: RunCount) => number | null): number =>
    lives.reduce((sum, life) => (moment(life) === minute ? sum + life.count : sum), 0);
  const minutes: RunMinute[] = [];
  let waiting = sumOf(active.filter((run) => run.started === null));
  let running = sumOf(active.filter((run) => run.started !== null));
  for (let minute = last; minute >= first; minute--) {
    const accepted = during(minute, (life) => life.accepted);
    const started = during(minute, (life) => life.started);
    const ended_now = during(minute, (life) => life.ended);
    minutes.unshift({
      at: isoOfMilliseconds(minute * MINUTE_MS),
      accepted,
      started,
      ended: ended_now,
      waiting,
      running,
    });
    // One that never began leaves the queue when it ends.
    const unbegun = during(minute, (life) => (life.started === null ? life.ended : null));
    waiting += started + unbegun - accepted;
    running += ended_now - unbegun - started;
  }
  return minutes;
}

const sumOf = (counts: readonly RunCount[]): number => counts.reduce((sum, { count }) => sum + count, 0);
