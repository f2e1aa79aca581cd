/** So many at a time; the others wait in the order in which they came. */
export class Slots {
  #free: number;
  /** Each takes the slot that it is given. */
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Does the work when its turn has come; when the signal is aborted before that, nothing. */
  async use(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    if (!(await this.#turn(signal))) return;
    try {
      await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }

  async #turn(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    if (this.#free > 0) {
      this.#free--;
      return true;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const take = () => resolve(true);
    const giveUp = () => {
      const at = this.#waiting.indexOf(take);
      if (at >= 0) this.#waiting.splice(at, 1);
      // One that was given the slot in the same moment has it, and passes it on.
      resolve(false);
    };
    this.#waiting.push(take);
    signal.addEventListener("abort", giveUp, { once: true });
    const hasSlot = await promise;
    signal.removeEventListener("abort", giveUp);
    return hasSlot;
  }
}
