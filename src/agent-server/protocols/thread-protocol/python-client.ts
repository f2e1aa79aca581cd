import type { ProtocolEvent } from "./protocol-events.ts";

// What the Python client expects otherwise than the JavaScript client.

/**
 * Which newest run a stream without a position begins with, if the run has ended: any, a recent one, or the thread's first one whose end
 * no client of this process has read.
 */
export type Replay = "ended" | "recent" | "unread";

/** Its WebSockets have the header of the package `websockets`. */
export const isPythonClient = (user_agent: string | undefined): boolean =>
  /^(langgraph-sdk-py\/|Python\/\S+ websockets\/)/.test(user_agent ?? "");

/**
 * The client ignores no event that it has seen on another connection, and takes the end of any run for the end of its own. One of its
 * streams has only that purpose. It opens that one before the start of a run if the caller has named the thread, else after it.
 */
export const replayForPython = (channels: readonly string[]): Replay => (waitsForEnd(channels) ? "unread" : "recent");

export const waitsForEnd = (channels: readonly string[]): boolean =>
  channels.every((channel) => channel === "lifecycle" || channel === "input");

/** Maximum number of runs that are kept for the streams that wait for their end. */
const MAX_UNWATCHED = 10_000;

/**
 * The runs that the client has started in this process while none of its streams waited for their end. It opens that stream at the same
 * time as it starts the run, so that a short run can have ended when the stream begins.
 */
export class UnwatchedRuns {
  readonly #max_age_ms: number;
  readonly #runs = new Map<string, { since: number; started_at: number }>();
  /** The streams that have not received the end of a run, by thread. The client expects only one end from a stream. */
  readonly #waiting = new Map<string, Set<RunWatch>>();

  /** @param max_age_ms time after which a stream belongs to a later run */
  constructor(max_age_ms: number) {
    this.#max_age_ms = max_age_ms;
  }

  /** @param since the `seq` of the last event before the run */
  add(thread_id: string, since: number): void {
    if (this.#waiting.has(thread_id)) return;
    this.#runs.delete(thread_id);
    this.#runs.set(thread_id, { since, started_at: Date.now() });
    if (this.#runs.size > MAX_UNWATCHED) this.#runs.delete(this.#runs.keys().next().value as string);
  }

  /**
   * Called for a stream that knows its position, so that it receives the runs that start later.
   *
   * @param signal aborted when the stream ends
   */
  watch(thread_id: string, signal: AbortSignal): RunWatch {
    const run = this.#runs.get(thread_id);
    this.#runs.delete(thread_id);
    const isRecent = run && Date.now() - run.started_at < this.#max_age_ms;
    const waiting = this.#waiting.get(thread_id) ?? new Set();
    const stop = () => {
      waiting.delete(watch);
      if (waiting.size === 0 && this.#waiting.get(thread_id) === waiting) this.#waiting.delete(thread_id);
    };
    const watch: RunWatch = {
      ...(isRecent && { missed_since: run.since }),
      ended: (since) => {
        stop();
        if (this.#runs.get(thread_id)?.since === since) this.#runs.delete(thread_id);
      },
    };
    if (signal.aborted) return watch;
    this.#waiting.set(thread_id, waiting.add(watch));
    signal.addEventListener("abort", stop, { once: true });
    return watch;
  }
}

/** A stream that waits for the end of a run. */
export interface RunWatch {
  /** The `seq` of the last event before the run whose end the stream may have missed. */
  missed_since?: number;
  /** Called when the stream has the end of the run after `since`. */
  ended(since: number): void;
}

const adapted = new WeakMap<ProtocolEvent, ProtocolEvent>();

/** Gives messages the namespace of their graph, instead of that of their node in it. */
export function toPythonEvent(event: ProtocolEvent): ProtocolEvent {
  if (event.event !== "messages" || event.namespace.length === 0) return event;
  const known = adapted.get(event);
  if (known) return known;
  const namespace = event.namespace.slice(0, -1);
  const textOf = (names: readonly string[]) => `"params":{"namespace":${JSON.stringify(names)}`;
  const data = event.data.replace(textOf(event.namespace), () => textOf(namespace));
  const result = { ...event, namespace, data };
  adapted.set(event, result);
  return result;
}
