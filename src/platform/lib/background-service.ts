import { withTimeout } from "./signal.ts";

/** `stop` waits for work in progress and may be called twice. A stopped service must not be started again. */
export interface BackgroundService {
  start(): void;
  stop(): Promise<void>;
}

/** Maximum time that `stop` waits, because work in progress may wait for a process that hangs. */
export const MAX_STOP_MS = 2_000;

/** Calls `work` at an interval, never concurrently. A failure does not end the service. */
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
      await withTimeout(current, MAX_STOP_MS);
    },
  };
}
