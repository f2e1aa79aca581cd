import { describe, expect, it } from "vitest";
import { nextTick } from "../../src/agent-server/crons/schedule.ts";

const ticks = (schedule: string, timezone: string, from: string, count: number): string[] => {
  const found: string[] = [];
  for (let at = Date.parse(from); found.length < count; at = Date.parse(found.at(-1) as string))
    found.push(new Date(nextTick({ schedule, timezone, end_at: null }, at) as number).toISOString());
  return found;
};

describe("the ticks of a schedule", () => {
  it("follow the time zone through the year", () => {
    expect(ticks("0 9 24 * *", "Europe/Berlin", "2026-06-25T00:00:00Z", 5)).toEqual([
      "2026-07-24T07:00:00.000Z",
      "2026-08-24T07:00:00.000Z",
      "2026-09-24T07:00:00.000Z",
      "2026-10-24T07:00:00.000Z",
      "2026-11-24T08:00:00.000Z",
    ]);
  });

  it("occur at the end of the hour that clocks skip", () => {
    expect(ticks("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2)).toEqual([
      "2026-03-29T01:00:00.000Z",
      "2026-03-30T00:30:00.000Z",
    ]);
  });

  it("occur once on the day when clocks are set back, and every hour of an hourly schedule", () => {
    expect(ticks("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2)).toEqual([
      "2026-10-25T00:30:00.000Z",
      "2026-10-26T01:30:00.000Z",
    ]);
    expect(ticks("0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", 3)).toEqual([
      "2026-10-25T00:00:00.000Z",
      "2026-10-25T01:00:00.000Z",
      "2026-10-25T02:00:00.000Z",
    ]);
  });

  it("end at the end time, which is included", () => {
    const end_at = Date.parse("2026-01-01T10:00:00Z");
    const schedule = { schedule: "0 10 * * *", timezone: null, end_at };
    expect(nextTick(schedule, end_at - 1)).toBe(end_at);
    expect(nextTick(schedule, end_at)).toBeNull();
  });
});
