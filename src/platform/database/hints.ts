import { EventEmitter } from "node:events";

/**
 * A hint says that something changed which another part may be waiting for. It carries no truth: whoever
 * waits also looks for himself from time to time, so a lost hint costs time and nothing else.
 */
export type Hint =
  /** A run may be ready to be claimed, now or so many milliseconds from now. A new one may not be committed yet. */
  | { kind: "runs"; in_ms?: number; isNew?: boolean }
  /** The run's row says that it is to stop. */
  | { kind: "cancel"; run_id: string }
  /** A run of the thread has started, or the thread is gone. */
  | { kind: "thread"; thread_id: string }
  /** The run has new events, or has ended. */
  | { kind: "events"; run_id: string }
  /** An OAuth flow has ended. */
  | { kind: "flow"; auth_id: string }
  /** The refresh of an OAuth token has ended, in one way or another. */
  | { kind: "token"; token_id: string }
  /** A key was revoked, or the membership of a workspace has changed. */
  | { kind: "access" }
  /** The deployment's rows ask for something that a reconciler is to do. */
  | { kind: "deployment"; deployment_id: string };

export interface Hints {
  emit(hint: Hint): void;
  /** Calls `listener` at each hint until the returned function is called. */
  listen<K extends Hint["kind"]>(kind: K, listener: (hint: Extract<Hint, { kind: K }>) => void): () => void;
}

/** Hints within this process. */
export class LocalHints implements Hints {
  readonly #emitter = new EventEmitter().setMaxListeners(0);

  emit(hint: Hint): void {
    this.#emitter.emit(hint.kind, hint);
  }

  listen<K extends Hint["kind"]>(kind: K, listener: (hint: Extract<Hint, { kind: K }>) => void): () => void {
    this.#emitter.on(kind, listener);
    return () => this.#emitter.off(kind, listener);
  }
}
