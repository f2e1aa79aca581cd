import type { Log } from "../../platform/lib/log.ts";
import type { ThreadRunKey } from "../storage/schema.ts";

interface DisconnectsOptions {
  cancel: (run: ThreadRunKey) => Promise<void>;
  grace_ms: number;
  log: Log;
}

/**
 * Cancels runs with `on_disconnect: cancel` after their client disconnects. A reader that connects within the grace period prevents the
 * cancel; readers that were connected before do not. Pending cancels are only in memory: the runs continue after a crash.
 */
export class Disconnects {
  readonly #options: DisconnectsOptions;
  readonly #timers = new Map<string, NodeJS.Timeout>();
  #stopped = false;

  constructor(options: DisconnectsOptions) {
    this.#options = options;
  }

  /** Drops the pending cancel of the run. */
  onConnect(run_id: string): void {
    clearTimeout(this.#timers.get(run_id));
    this.#timers.delete(run_id);
  }

  /** Cancels the run when `disconnected` is aborted and no reader connects within the grace period. */
  watch(run: ThreadRunKey, disconnected: AbortSignal): void {
    if (disconnected.aborted) this.#onDisconnect(run);
    else disconnected.addEventListener("abort", () => this.#onDisconnect(run), { once: true });
  }

  /** Drops pending cancels: connections that the shutdown closes are not disconnects. */
  stop(): void {
    this.#stopped = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }

  #onDisconnect(run: ThreadRunKey): void {
    if (this.#stopped) return;
    this.onConnect(run.run_id);
    const { cancel, grace_ms, log } = this.#options;
    const timer = setTimeout(() => {
      this.#timers.delete(run.run_id);
      cancel(run).catch((error) => log.error({ error, run_id: run.run_id }, "cancel on disconnect failed"));
    }, grace_ms);
    this.#timers.set(run.run_id, timer.unref());
  }
}
