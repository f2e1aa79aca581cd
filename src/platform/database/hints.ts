import { EventEmitter } from "node:events";
import { isObject, jsonOrUndefined } from "../lib/json/json.ts";

/** Announces a change. Listeners also poll, so a lost hint causes only a delay. */
export type Hint =
  /** A run may be ready to be claimed, now or in `in_ms` milliseconds. With `isNew`, the run is possibly not committed yet. */
  | { kind: "runs"; in_ms?: number; isNew?: boolean }
  /** The row of the run contains a request to cancel it. */
  | { kind: "cancel"; run_id: string }
  /** A run of the thread has started, or the thread was deleted. */
  | { kind: "thread"; thread_id: string }
  /** The run has new events, or has ended. */
  | { kind: "events"; run_id: string }
  /** The next tick of a cron has changed. */
  | { kind: "crons" }
  /** A run with a webhook has ended, or a webhook is to be sent again. */
  | { kind: "webhooks" }
  /** An OAuth flow has ended. */
  | { kind: "flow"; auth_id: string }
  /** The refresh of an OAuth token has succeeded or failed. */
  | { kind: "token"; token_id: string }
  /** A key was revoked, or the membership of a workspace has changed. */
  | { kind: "access" }
  /** The deployment has work for a reconciler. */
  | { kind: "deployment"; deployment_id: string };

const KINDS: ReadonlySet<unknown> = new Set<Hint["kind"]>([
  "runs",
  "cancel",
  "thread",
  "events",
  "crons",
  "webhooks",
  "flow",
  "token",
  "access",
  "deployment",
]);

/** Returns undefined for a text that is no hint: on Postgres, any role of the database can send notifications. */
export function parseHint(text: string): Hint | undefined {
  const hint = jsonOrUndefined(text);
  return isObject(hint) && KINDS.has(hint.kind) ? (hint as Hint) : undefined;
}

export interface Hints {
  emit(hint: Hint): void;
  /** @returns a function that removes the listener */
  listen<K extends Hint["kind"]>(kind: K, listener: (hint: Extract<Hint, { kind: K }>) => void): () => void;
}

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
