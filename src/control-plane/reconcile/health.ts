/**
 * Asks an instance whether it can take requests.
 *
 * @returns undefined when it can; otherwise what was seen instead, to be read after "/ok "
 */
export type AskOk = (address: string) => Promise<string | undefined>;

/** Asks over HTTP, and takes nothing but a 200 within the time for a yes. */
export const askOverHttp =
  (timeout_ms: number): AskOk =>
  async (address) => {
    try {
      const signal = AbortSignal.timeout(timeout_ms);
      const response = await fetch(`${address}/ok`, { signal, redirect: "manual" });
      await response.body?.cancel();
      return response.status === 200 ? undefined : `answered ${response.status}`;
    } catch (error) {
      if ((error as Error).name === "TimeoutError") return `did not answer within ${timeout_ms / 1000} s`;
      return "could not be reached";
    }
  };

export interface Patience {
  /** How long an instance may take to become ready. */
  deadline_ms: number;
  /** Past that it may take longer while it has written something, or changed, within this time. */
  progress_ms: number;
}

/** However much an instance writes, it is given up after so many deadlines. */
const MAX_DEADLINES = 4;

/**
 * When a roll-out is given up as long as nothing else happens: at the deadline, later while there is progress. What comes up just
 * after a fixed deadline is what users of other services complain about most.
 */
export function givenUpAt(
  { began_at, progress_at }: { began_at: number; progress_at: number },
  { deadline_ms, progress_ms }: Patience,
): number {
  const deadline = Math.max(began_at + deadline_ms, progress_at + Math.min(progress_ms, deadline_ms));
  return Math.min(deadline, began_at + MAX_DEADLINES * deadline_ms);
}
