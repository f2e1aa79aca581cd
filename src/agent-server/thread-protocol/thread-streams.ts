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
import { type ProtocolEvent, ProtocolEvents, seqOf, splitSeq } from "./protocol-events.ts";
import { selector } from "./selection.ts";

/** A client that takes the end of any run for the end of its own opens its stream within this time after the run has been accepted. */
const RECENT_MS = 10_000;
const isRequest = ({ event }: ThreadEvent): boolean => event.split("|")[0] === `${PROTOCOL_PREFIX}input.requested`;

/** Maximum number of queued runs with which a stream without a position begins. */
const MAX_QUEUED = 10;

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
   * @throws ApiError thread_not_found for a thread that the caller cannot access
   */
  async events(
    caller: Caller,
    thread_id: string,
    { since, ...filter }: EventSelection,
    options: StreamOptions,
  ): Promise<AsyncGenerator<readonly ProtocolEvent[]>> {
    const { events } = await this.open(caller, thread_id, since, options);
    return select(events, selector(filter));
  }

  /**
   * Like {@link events}, for all events.
   *
   * @returns the events, and the `seq` after which they begin
   */
  async open(
    caller: Caller,
    thread_id: string,
    since: number | undefined,
    { signal, replaysEnded = true }: StreamOptions,
  ): Promise<{ after: number; events: AsyncGenerator<readonly ProtocolEvent[]> }> {
    const startOf = (thread: ThreadRow) => this.#startOf(thread, since, replaysEnded);
    const thread = await this.#find(caller, thread_id);
    if (!thread)
      return { after: 0, events: this.#followCreated(() => this.#created(caller, thread_id, signal), startOf, signal) };
    const start = await startOf(thread);
    return { after: seqOf(start), events: this.#follow(thread, start, signal) };
  }

  async *#followCreated(
    created: () => Promise<ThreadRow>,
    startOf: (thread: ThreadRow) => Promise<Position>,
    signal: AbortSignal,
  ): AsyncGenerator<readonly ProtocolEvent[]> {
    const thread = await created();
    yield* this.#follow(thread, await startOf(thread), signal);
  }

  async *#follow(thread: ThreadRow, start: Position, signal: AbortSignal): AsyncGenerator<readonly ProtocolEvent[]> {
    const { engine } = this.#context;
    const held: ProtocolEvent[] = [];
    for await (const batch of engine.threadEvents.follow(thread, start, signal)) {
      const shared = held.length === 0 ? this.#shared(batch) : undefined;
      const events = shared ?? batch.flatMap((event) => this.#ordered(event, held));
      if (events.length > 0) yield events;
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
    const [last, ...earlier] = await engine.threadEvents.last(thread, MAX_QUEUED);
    if (!last) return engine.threadEvents.now(thread);
    const { ended_at } = last;
    const isRecent = (time: number) => Date.now() - time < RECENT_MS;
    const isReplayed =
      ended_at === null ||
      ((replaysEnded || thread.status === "interrupted" || isRecent(ended_at)) &&
        // A client that has started another run since then waits for that one.
        (await listActiveRuns(database.read, thread.thread_id)).every(({ created_at }) => created_at < ended_at));
    if (!isReplayed) return endOf(last);
    // A client that connects again may have missed the end of earlier runs that were active when later ones were accepted.
    let first = last;
    for (const run of earlier) {
      if (run.ended_at === null || run.ended_at < first.created_at || !isRecent(run.ended_at)) break;
      first = run;
    }
    return endOf({ started_at: first.started_at, seq: first.seq - 1 });
  }
}

export interface StreamOptions {
  signal: AbortSignal;
  /** Whether a stream without a position begins with the newest run, even if it ended some time ago. Default: true. */
  replaysEnded?: boolean;
}

async function* select(
  batches: AsyncGenerator<readonly ProtocolEvent[]>,
  isSelected: (event: ProtocolEvent) => boolean,
): AsyncGenerator<readonly ProtocolEvent[]> {
  for await (const events of batches) {
    const selected = events.every(isSelected) ? events : events.filter(isSelected);
    if (selected.length > 0) yield selected;
  }
}
