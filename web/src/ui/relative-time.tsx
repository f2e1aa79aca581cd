import { useSyncExternalStore } from "react";
import { DASH, exactTime, relativeTime } from "./format.ts";

/** All times of a page are told anew together. */
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
  // Nobody listened for a while: what is drawn first is not to be old.
  if (listeners.size === 0 && Date.now() - now.getTime() > TICK_MS) now = new Date();
  return now;
};

/**
 * A time as people say it, with the exact one on hover. What has happened is never said to come: the server's clock may be ahead of
 * this one, and what is drawn now is compared with a time that is up to {@link TICK_MS} old.
 *
 * @param isAhead it may lie in the future: the end of a token, the start of a run
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
