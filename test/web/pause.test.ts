import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { pause } from "../../web/src/api/pause.ts";

const LONG_MS = 3_600_000;

const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;

describe("a pause of the web app", () => {
  it("leaves no listener behind when its time is over", async () => {
    const { signal } = new AbortController();
    for (let i = 0; i < 5; i++) await pause(1, signal);
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  it("ends when it is aborted, without a timer or a listener", async () => {
    const before = timers();
    const abort = new AbortController();
    const pausing = pause(LONG_MS, abort.signal);
    expect([getEventListeners(abort.signal, "abort").length, timers()]).toEqual([1, before + 1]);
    abort.abort();
    await pausing;
    expect([getEventListeners(abort.signal, "abort").length, timers()]).toEqual([0, before]);
  });

  it("ends at once when it was aborted before", async () => {
    const signal = AbortSignal.abort();
    await pause(LONG_MS, signal);
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });
});
