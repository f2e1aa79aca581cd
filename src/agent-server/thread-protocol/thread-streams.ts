import type { Caller } from "../../platform/contract/caller.ts";
import { pollUntil } from "../../platform/database/poll-until.ts";
import { ApiError } from "../../platform/errors.ts";
import { filterOf } from "../auth/grants.ts";
import type { AgentContext } from "../context.ts";
import type { EventSelection } from "../contract/thread-protocol.ts";
import { endOf, type Position, type ThreadEvent } from "../engine/index.ts";
import { PROTOCOL_PREFIX } from "../graph-hosts/host.ts";
import { listActiveRuns } from "../storage/runs.ts";
import type { ThreadRow } from "../storage/schema.ts";
import { findThread, isThreadId } from "../storage/threads.ts";
import { type ProtocolEvent, ProtocolEvents, splitSeq } from "./protocol-events.ts";
import { selector } from "./selection.ts";

/** A client that takes the end of any run for the end of its own opens its stream within this time after the run has been accepted. */
const RECENT_MS = 10_000;
const isRequest = ({ event }: ThreadEvent): boolean => event.split("|")[0] === `${PROTOCOL_PREFIX}input.requested`;

/** Interval at which a reader looks for a thread that does not exist yet, in addition to notifications. */
const POLL_MS = 200;

/** The events of threads in the form of the thread protocol. */
export class ThreadStreams {
  readonly #context: AgentContext;
  readonly #events = new ProtocolEvents();
  readonly #batches = new WeakMap<readonly ThreadEvent[], readonly ProtocolEvent[] | undefined>();

  constructor(context: AgentContext) {
    this.#context = context;
  }

  /**
   * Returns the selected events of a thread, across its runs, until it is deleted. If it does not exist yet, they begin when it does. The
   * generator throws `signal.reason` when `signal` is aborted.
   *
   * @param replaysEnded whether a stream without a position begins with the newest run, even if it ended some time ago
   * @throws ApiError thread_not_found for a thread that the caller cannot access
   */
  async events(
    caller: Caller,
    thread_id: string,
    selection: EventSelection,
    { signal, replaysEnded = true }: { signal: AbortSignal; replaysEnded?: boolean },
  ): Promise<AsyncGenerator<readonly ProtocolEvent[]>> {
    const thread = await this.#find(caller, thread_id);
    return this.#follow(thread ?? this.#created(caller, thread_id, signal), selection, replaysEnded, signal);
  }

  async *#follow(
    found: ThreadRow | Promise<ThreadRow>,
    { since, ...filter }: EventSelection,
    replaysEnded: boolean,
    signal: AbortSignal,
  ): AsyncGenerator<readonly ProtocolEvent[]> {
    const { engine } = this.#context;
    const isSelected = selector(filter);
    const thread = await found;
    const start = await this.#startOf(thread, since, replaysEnded);
    const held: ProtocolEvent[] = [];
    for await (const batch of engine.threadEvents.follow(thread, start, signal)) {
      const shared = held.length === 0 ? this.#shared(batch) : undefined;
      const events = shared ?? batch.flatMap((event) => this.#ordered(event, held));
      const selected = events.every(isSelected) ? events : events.filter(isSelected);
      if (selected.length > 0) yield selected;
    }
  }

  /** Returns the events for all readers of a batch, unless it contains an event whose place depends on the reader. */
  #shared(batch: readonly ThreadEvent[]): readonly ProtocolEvent[] | undefined {
    if (this.#batches.has(batch)) return this.#batches.get(batch);
    const events = batch.some((event) => isRequest(event) || event.mode === "lifecycle")
      ? undefined
      : batch.flatMap((event) => this.#events.of(event));
    this.#batches.set(batch, events);
    return events;
  }

  /** Holds requests for responses until the run has ended: a response that arrives earlier would not find the interrupt. */
  #ordered(event: ThreadEvent, held: ProtocolEvent[]): readonly ProtocolEvent[] {
    const events = this.#events.of(event);
    if (isRequest(event)) {
      held.push(...events);
      return [];
    }
    // A further attempt of the run requests them again.
    if (event.event === "metadata") held.length = 0;
    return event.mode === "lifecycle" ? [...held.splice(0), ...events] : events;
  }

  /** Returns undefined if no thread has the id. */
  async #find(caller: Caller, thread_id: string): Promise<ThreadRow | undefined> {
    const { read } = this.#context.database;
    const thread = await findThread(read, caller.tenant_id, thread_id, filterOf(caller, "threads"));
    if (thread ? thread.hidden : await isThreadId(read, thread_id))
      throw new ApiError("thread_not_found", { thread_id });
    return thread;
  }

  /** Waits until the thread exists. */
  async #created(caller: Caller, thread_id: string, abort: AbortSignal): Promise<ThreadRow> {
    const found = await pollUntil(() => this.#find(caller, thread_id), {
      hints: this.#context.database.hints,
      kind: "thread",
      isRelevant: (hint) => hint.thread_id === thread_id,
      poll_ms: POLL_MS,
      abort,
    });
    abort.throwIfAborted();
    return found as ThreadRow;
  }

  async #startOf(thread: ThreadRow, since: number | undefined, replaysEnded: boolean): Promise<Position> {
    const { engine, database } = this.#context;
    if (since !== undefined) {
      const { run_seq, event } = splitSeq(since);
      return engine.threadEvents.positionOf(thread, run_seq, event);
    }
    const last = await engine.threadEvents.last(thread);
    if (!last) return engine.threadEvents.now(thread);
    const { started_at, seq, ended_at } = last;
    const isReplayed =
      ended_at === null ||
      ((replaysEnded || thread.status === "interrupted" || Date.now() - ended_at < RECENT_MS) &&
        // A run that has been accepted and has not started is newer.
        (await listActiveRuns(database.read, thread.thread_id)).length === 0);
    return endOf(isReplayed ? { started_at, seq: seq - 1 } : last);
  }
}
