import v8 from "node:v8";

/**
 * V8 doubles its young generation while there is much to do, up to 134 MB, and never gives that back. At this size the
 * service takes 150 MB less after a load and executes as many runs.
 */
const MAX_BYTES = 16 * 1024 * 1024;
const EVERY_MS = 200;

/**
 * Lets the young generations grow, which bin/threadmill.js has held small while modules were loaded, and stops that once
 * the serving thread's is large enough. (Graph hosts have a limit of their own.)
 */
export function letYoungGenerationGrow(): void {
  // V8's own factor.
  v8.setFlagsFromString("--semi-space-growth-factor=2");
  const timer = setInterval(() => {
    const young = v8.getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space");
    if (young && young.space_size < MAX_BYTES) return;
    v8.setFlagsFromString("--semi-space-growth-factor=1");
    clearInterval(timer);
  }, EVERY_MS).unref();
}
