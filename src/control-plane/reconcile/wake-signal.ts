import type { Wait } from "../../platform/lib/clock.ts";

/** What one waits by who works when called, and looks for himself when not. A ring while nobody waits is not lost. */
export class Bell {
  readonly #wait: Wait;
  #rung = false;
  #sleeping: AbortController | undefined;

  constructor(wait: Wait) {
    this.#wait = wait;
  }

  ring(): void {
    this.#rung = true;
    this.#sleeping?.abort();
  }

  /** Ends after `ms`, or when the bell rings, or at once when it has rung since the last call. */
  async sleep(ms: number): Promise<void> {
    if (!this.#rung) {
      this.#sleeping = new AbortController();
      await this.#wait(ms, this.#sleeping.signal);
      this.#sleeping = undefined;
    }
    this.#rung = false;
  }
}
