import { setTimeout as sleep } from "node:timers/promises";

/**
 * Work that runs in the background until it is stopped. `stop` waits for work in progress and may be called twice. A stopped service
 * is not started again.
 */
export interface BackgroundService {
  start(): void;
  stop(): Promise<void>;
}

/** Maximum time that `stop` waits for work in progress, which may itself wait for a process that hangs. */
const MAX_STOP_MS = 2_000;

/** Calls `work` every `interval_ms`, never concurrently. A failure is reported and does not end the repetition. */
export function periodicService(
  interval_ms: number,
  work: () => Promise<unknown>,
  onError: (error: unknown) => void,
): BackgroundService {
  let timer: NodeJS.Timeout | undefined;
  let current: Promise<unknown> = Promise.resolve();
  let stopped = false;
  const run = () => {
    current = work()
      .catch((error) => stopped || onError(error))
      .finally(() => {
        if (!stopped) timer = setTimeout(run, interval_ms).unref();
      });
  };
  return {
    start() {
      timer = setTimeout(run, interval_ms).unref();
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await Promise.race([current, sleep(MAX_STOP_MS, undefined, { ref: false })]);
    },
  };
}
