import { useSyncExternalStore } from "react";
import { DASH, exactTime, relativeTime } from "./format.ts";

/** All times of a page update together. */
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
  // Without subscribers the clock does not tick: update it for the first render.
  if (listeners.size === 0 && Date.now() - now.getTime() > TICK_MS) now = new Date();
  return now;
};

/**
 * A relative time with the exact time on hover. A past time never reads as a future one: the clock of the server may be ahead of the
 * clock of the browser, and the current time is up to {@link TICK_MS} old.
 *
 * @param isAhead the time may be in the future: the expiry of a token, the start of a run
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
