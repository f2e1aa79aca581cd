import type { Hint, Hints } from "../../platform/database/hints.ts";

/** When to look, besides at once: when told, and from time to time in case nobody tells. */
export interface Looking<K extends Hint["kind"]> {
  hints: Hints;
  kind: K;
  isMine(hint: Extract<Hint, { kind: K }>): boolean;
  /** The first pause between two looks; each is twice as long as the last, up to {@link LONGEST_PAUSE_MS}. */
  poll_ms: number;
  /** Then it is given up. */
  at_most_ms: number;
  /** Aborted when nobody wants to know any more. */
  signal?: AbortSignal | undefined;
}

/** A wait takes minutes, and hints get lost hardly ever: waiters must not keep the database busy. */
const LONGEST_PAUSE_MS = 2_000;

/**
 * Looks until there is something to see.
 *
 * @returns what was seen; undefined when the time was up or the signal was aborted
 */
export async function lookUntil<T, K extends Hint["kind"]>(
  look: () => Promise<T | undefined>,
  { hints, kind, isMine, poll_ms, at_most_ms, signal }: Looking<K>,
): Promise<T | undefined> {
  const deadline = performance.now() + at_most_ms;
  let wake: () => void = () => undefined;
  let isTold = false;
  const tell = () => {
    isTold = true;
    wake();
  };
  // Listen, then look: what is told after this line ends the next pause.
  const deaf = hints.listen(kind, (hint) => {
    if (isMine(hint)) tell();
  });
  signal?.addEventListener("abort", tell);
  try {
    for (let pause_ms = poll_ms; ; pause_ms = Math.min(2 * pause_ms, LONGEST_PAUSE_MS)) {
      isTold = false;
      const seen = await look();
      const left_ms = deadline - performance.now();
      if (seen !== undefined || left_ms <= 0 || signal?.aborted) return seen;
      if (isTold) continue;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(pause_ms, left_ms));
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  } finally {
    deaf();
    signal?.removeEventListener("abort", tell);
  }
}
