/**
 * Resolves after the given time, or when the signal aborts. An abort does not reject the promise; the caller's next operation with the
 * signal fails instead.
 */
export const pause = (pause_ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, signal.aborted ? 0 : pause_ms);
    signal.addEventListener("abort", end);
  });
