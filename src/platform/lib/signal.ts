import type { Wait } from "./clock.ts";

export interface SignalOptions {
  /** An abort counts as a notification: an aborted signal never blocks. Requires {@link Signal.close} at the end. */
  abort?: AbortSignal | undefined;
  /** Replaces the timers of the process for waits with a timeout, so that tests can control time. */
  wait?: Wait | undefined;
}

/**
 * Wakes one waiter by a notification, a timeout or an abort. A notification that arrives while there is no waiter ends the next
 * wait at once.
 *
 * The abort signal has one listener for all waits: with a listener for each wait, V8 retained 50 KB/s for each reader of
 * 100 events/s.
 */
export class Signal {
  readonly #abort: AbortSignal | undefined;
  readonly #wait: Wait | undefined;
  #isAborted: boolean;
  #isNotified: boolean;
  #wake: (() => void) | undefined;

  constructor({ abort, wait }: SignalOptions = {}) {
    this.#abort = abort;
    this.#wait = wait;
    this.#isAborted = abort?.aborted ?? false;
    this.#isNotified = this.#isAborted;
    abort?.addEventListener("abort", this.#onAbort);
  }

  readonly notify = (): void => {
    this.#isNotified = true;
    this.#wake?.();
  };

  /** Discards earlier notifications. Call it before reading the state: only notifications after the call end the next wait. */
  reset(): void {
    this.#isNotified = this.#isAborted;
  }

  /** Resolves at the next notification, after the timeout, or at once if a notification is pending. It never rejects. */
  async wait(timeout_ms?: number): Promise<void> {
    if (!this.#isNotified) {
      if (this.#wait && timeout_ms !== undefined) await this.#sleep(this.#wait, timeout_ms);
      else {
        const timer = timeout_ms === undefined ? undefined : setTimeout(this.notify, timeout_ms);
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        clearTimeout(timer);
      }
    }
    this.#isNotified = this.#isAborted;
  }

  /** Removes the listener from the abort signal. */
  close(): void {
    this.#abort?.removeEventListener("abort", this.#onAbort);
  }

  readonly #onAbort = (): void => {
    this.#isAborted = true;
    this.notify();
  };

  #sleep(wait: Wait, timeout_ms: number): Promise<void> {
    const ended = new AbortController();
    this.#wake = () => ended.abort();
    return wait(timeout_ms, ended.signal);
  }
}

/**
 * Settles like `work`, or rejects with the reason of the signal as soon as the signal is aborted. The work continues after an abort,
 * and its outcome is ignored.
 */
export function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
