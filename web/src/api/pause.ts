/**
 * Resolves after the given time or when the signal aborts, and then removes its timer and listener. An abort does not reject the promise:
 * the caller's next operation with the signal does.
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
