/**
 * Waits so long, or until it is aborted, which it does not say: whoever aborted is told by what comes next. Nothing of it is left
 * behind, neither a timer nor a listener, however often a signal is waited with.
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
