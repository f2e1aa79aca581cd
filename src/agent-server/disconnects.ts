import type { Log } from "../platform/lib/log.ts";
import type { RunRow } from "./storage/schema.ts";

type RunKey = Pick<RunRow, "run_id" | "thread_id" | "tenant_id">;

/**
 * Cancels runs whose client wanted that when it is gone. A client whose connection broke gets a grace to come back: any
 * reader of the run that arrives within it counts, but those that were there before do not.
 */
export class Disconnects {
  readonly #cancel: (run: RunKey) => Promise<void>;
  readonly #grace_ms: number;
  readonly #log: Log;
  readonly #leaving = new Map<string, NodeJS.Timeout>();
  #stopped = false;

  constructor(options: { cancel: (run: RunKey) => Promise<void>; grace_ms: number; log: Log }) {
    this.#cancel = options.cancel;
    this.#grace_ms = options.grace_ms;
    this.#log = options.log;
  }

  /** A reader of the run has come. */
  arrived(run_id: string): void {
    clearTimeout(this.#leaving.get(run_id));
    this.#leaving.delete(run_id);
  }

  /** Cancels the run some time after `gone`, unless somebody comes to read it. */
  watch(run: RunKey, gone: AbortSignal): void {
    if (gone.aborted) this.#left(run);
    else gone.addEventListener("abort", () => this.#left(run), { once: true });
  }

  /** When the service stops it is not the clients that go. */
  stop(): void {
    this.#stopped = true;
    for (const timer of this.#leaving.values()) clearTimeout(timer);
    this.#leaving.clear();
  }

  #left(run: RunKey): void {
    if (this.#stopped) return;
    this.arrived(run.run_id);
    const timer = setTimeout(() => {
      this.#leaving.delete(run.run_id);
      this.#cancel(run).catch((error) =>
        this.#log.error({ error, run_id: run.run_id }, "a run could not be cancelled"),
      );
    }, this.#grace_ms);
    this.#leaving.set(run.run_id, timer.unref());
  }
}
