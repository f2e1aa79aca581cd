import type { Target } from "./target.ts";

const LOOK_EVERY_MS = 100;

/** Looks at the resident memory of a target's process until it is stopped. @returns all that it saw, in MB */
export function watchMemory(target: Target): { stop(): number[] } {
  const rss_mb: number[] = [];
  const timer = setInterval(() => {
    const usage = target.usage();
    if (usage) rss_mb.push(usage.rss_mb);
  }, LOOK_EVERY_MS);
  const stop = () => {
    clearInterval(timer);
    return rss_mb;
  };
  return { stop };
}
