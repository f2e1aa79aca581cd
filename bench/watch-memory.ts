import type { Target } from "./target.ts";

const POLL_MS = 100;

/** Samples the resident memory of a target until it is stopped. `stop` returns the samples, in MB. */
export function watchMemory(target: Target): { stop(): number[] } {
  const rss_mb: number[] = [];
  const timer = setInterval(() => {
    const usage = target.usage();
    if (usage) rss_mb.push(usage.rss_mb);
  }, POLL_MS);
  const stop = () => {
    clearInterval(timer);
    return rss_mb;
  };
  return { stop };
}
