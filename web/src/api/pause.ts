/**
 * Resolves after the given time, or when the signal is aborted. It never rejects: the next operation with the signal does. It leaves no
 * timer and no listener behind.
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
