import { useSyncExternalStore } from "react";
import { DASH, exactTime, relativeTime } from "./format.ts";

/** Interval at which all times on a page update together. */
const TICK_MS = 15_000;
let now = new Date();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = new Date();
    for (const each of listeners) each();
  }, TICK_MS);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

const nowOfPage = (): Date => {
  // The timer updates `now` only while components subscribe, so the first render must update it.
  if (listeners.size === 0 && Date.now() - now.getTime() > TICK_MS) now = new Date();
  return now;
};

/**
 * Shows a relative time, and the exact time on hover.
 *
 * A past time is never shown as a future time: the server's clock may be ahead of the browser's clock, and the current time is up to {@link
 * TICK_MS} old.
 *
 * @param isAhead whether the time may be in the future, such as a token's expiry or a run's start
 */
export function RelativeTime({ time, isAhead = false }: { time: string | null | undefined; isAhead?: boolean }) {
  const current = useSyncExternalStore(subscribe, nowOfPage);
  if (!time) return <span className="text-text-3">{DASH}</span>;
  const date = new Date(time);
  return (
    <time dateTime={time} title={exactTime(date)} className="whitespace-nowrap">
      {relativeTime(date, !isAhead && date > current ? date : current)}
    </time>
  );
}
