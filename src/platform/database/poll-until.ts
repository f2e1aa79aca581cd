import { Signal } from "../lib/signal.ts";
import type { Hint, Hints } from "./hints.ts";

export interface PollOptions<K extends Hint["kind"]> {
  hints: Hints;
  /** Relevant hints of this kind end a pause. */
  kind: K;
  isRelevant(hint: Extract<Hint, { kind: K }>): boolean;
  /** The first pause between two reads. Each pause is twice as long as the previous one, up to `max_poll_ms`. */
  poll_ms: number;
  /** Default: 2 s. Hints are rarely lost, so more frequent reads would only load the database. */
  max_poll_ms?: number;
  /** Default: no limit. */
  timeout_ms?: number;
  abort?: AbortSignal | undefined;
}

/**
 * Calls `read` immediately, at relevant hints and at intervals, until there is a result. Returns undefined after the
 * timeout or an abort.
 */
export async function pollUntil<T, K extends Hint["kind"]>(
  read: () => Promise<T | undefined>,
  options: PollOptions<K>,
): Promise<T | undefined> {
  const { hints, kind, isRelevant, poll_ms, max_poll_ms = 2_000, timeout_ms = Infinity, abort } = options;
  const deadline = performance.now() + timeout_ms;
  const signal = new Signal({ abort });
  const unlisten = hints.listen(kind, (hint) => {
    if (isRelevant(hint)) signal.notify();
  });
  try {
    for (let pause_ms = poll_ms; ; pause_ms = Math.min(2 * pause_ms, max_poll_ms)) {
      // A hint that arrives during the read ends the next pause.
      signal.reset();
      const found = await read();
      const left_ms = deadline - performance.now();
      if (found !== undefined || left_ms <= 0) return found;
      await signal.wait(Math.min(pause_ms, left_ms));
      if (abort?.aborted) return undefined;
    }
  } finally {
    unlisten();
    signal.close();
  }
}
