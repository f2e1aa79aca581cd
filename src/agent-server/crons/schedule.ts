import { Cron } from "croner";
import { ApiError } from "../../platform/errors.ts";

export interface Schedule {
  schedule: string;
  /** IANA time zone; null for UTC. */
  timezone: string | null;
  /** Latest time of a tick, in milliseconds since the epoch; null for no limit. */
  end_at: number | null;
}

/**
 * Returns the first tick after `after_ms`, or null if none. When clocks are set forward, a tick at a single fixed time occurs at the end
 * of the skipped hour; other ticks in that hour are omitted. When they are set back, a daily tick in the repeated hour occurs once.
 */
export function nextTick({ schedule, timezone, end_at }: Schedule, after_ms: number): number | null {
  const cron = new Cron(schedule.trim(), { timezone: timezone ?? "UTC", mode: "5-part" });
  const tick = cron.nextRun(new Date(after_ms))?.getTime() ?? null;
  return tick !== null && end_at !== null && tick > end_at ? null : tick;
}

/** @throws ApiError invalid_request for an invalid schedule or time zone, or a schedule without a tick after `after_ms` */
export function checkSchedule(schedule: Schedule, after_ms: number): void {
  const invalid = (reason: string) => new ApiError("invalid_request", { reason });
  const { timezone } = schedule;
  if (timezone !== null && !isTimezone(timezone))
    throw invalid(`body.timezone: must be an IANA time zone such as Europe/Berlin, but is "${timezone}"`);
  let tick: number | null;
  try {
    tick = nextTick({ ...schedule, end_at: null }, after_ms);
  } catch (error) {
    // The library names six and seven parts, too, which the mode 5-part rejects.
    const reason = (error as Error).message.replace(/^CronPattern: |\.$/g, "").replace("five, six, or seven", "five");
    throw invalid(`body.schedule: not a valid cron expression (${reason})`);
  }
  if (tick === null) throw invalid(`body.schedule: "${schedule.schedule}" matches no date in the future`);
}

function isTimezone(timezone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: timezone });
    return true;
  } catch {
    return false;
  }
}
