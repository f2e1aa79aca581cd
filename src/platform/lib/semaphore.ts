/**
 * Limits concurrency. Callers get a slot in the order of their calls. (The package p-limit has no abort for a single waiting call:
 * a deployment that is deleted would stay in the queue of builds.)
 */
export class Semaphore {
  #free: number;
  /** Each entry hands a slot to one waiting caller. */
  readonly #waiting: (() => void)[] = [];

  constructor(slots: number) {
    this.#free = slots;
  }

  /** Waits for a slot and runs `work` with it. Resolves without running `work` when the signal is aborted first. */
  async use(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    if (!(await this.#acquire(signal))) return;
    try {
      await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }

  /** @returns false when the signal is aborted before there is a slot */
  async #acquire(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    if (this.#free > 0) {
      this.#free--;
      return true;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const take = () => resolve(true);
    const onAbort = () => {
      const index = this.#waiting.indexOf(take);
      if (index >= 0) this.#waiting.splice(index, 1);
      // A caller that got its slot just before the abort keeps it: the promise has been resolved with true.
      resolve(false);
    };
    this.#waiting.push(take);
    signal.addEventListener("abort", onAbort, { once: true });
    const isAcquired = await promise;
    signal.removeEventListener("abort", onAbort);
    return isAcquired;
  }
}
