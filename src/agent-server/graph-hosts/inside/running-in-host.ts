import type { AbortReason } from "../host.ts";

/** The handles by which a run is stopped from outside. */
export class RunningInHost {
  readonly #controller = new AbortController();
  /** LangGraph looks at it between two steps. */
  #requestDrain: (() => void) | undefined;
  #draining = false;
  reason: AbortReason | undefined;

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: AbortReason): void {
    this.reason ??= reason;
    this.#controller.abort(new Error(`The run was stopped: ${reason.replace("_", " ")}.`));
  }

  drain(): void {
    this.#draining = true;
    this.#requestDrain?.();
  }

  onDrain(request: () => void): void {
    this.#requestDrain = request;
    if (this.#draining) request();
  }
}
