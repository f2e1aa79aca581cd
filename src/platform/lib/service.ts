import { setTimeout as sleep } from "node:timers/promises";

/**
 * Something that runs in the background until it is stopped. `stop` waits for work in progress and is
 * safe to call twice; a stopped service is not started again.
 */
export interface Service {
  start(): void;
  stop(): Promise<void>;
}

/** `stop` waits this long for work in progress: it may itself wait for somebody who is frozen. */
const MAX_STOP_MS = 2_000;

/** Calls `work` every `interval_ms`, never twice at once; a failure is reported and the next turn comes all the same. */
export function repeating(
  interval_ms: number,
  work: () => Promise<unknown>,
  onError: (error: unknown) => void,
): Service {
  let timer: NodeJS.Timeout | undefined;
  let current: Promise<unknown> = Promise.resolve();
  let stopped = false;
  const turn = () => {
    current = work()
      .catch((error) => stopped || onError(error))
      .finally(() => {
        if (!stopped) timer = setTimeout(turn, interval_ms).unref();
      });
  };
  return {
    start() {
      timer = setTimeout(turn, interval_ms).unref();
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await Promise.race([current, sleep(MAX_STOP_MS, undefined, { ref: false })]);
    },
  };
}
