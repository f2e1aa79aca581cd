/** Limits concurrency. Callers get a slot in the order of their calls. Unlike with p-limit, a single waiting call can be aborted. */
export class Semaphore {
  #free: number;
  /** Each entry hands a slot to one waiting caller. */
  readonly #waiting: (() => void)[] = [];

  constructor(slots: number) {
    this.#free = slots;
  }

  /** Runs `work` with a slot, or not at all if the signal is aborted first. */
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
      // Has no effect if the caller has just received its slot.
      resolve(false);
    };
    this.#waiting.push(take);
    signal.addEventListener("abort", onAbort, { once: true });
    const isAcquired = await promise;
    signal.removeEventListener("abort", onAbort);
    return isAcquired;
  }
}
