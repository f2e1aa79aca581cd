import type { Caller } from "../../../platform/contract/caller.ts";
import { pollUntil } from "../../../platform/database/poll-until.ts";
import { ApiError } from "../../../platform/errors.ts";
import { filterOf } from "../../auth/grants.ts";
import type { AgentContext } from "../../context.ts";
import type { EventSelection } from "../../contract/thread-protocol.ts";
import { endOf, type Position, type ThreadEvent } from "../../engine/index.ts";
import { PROTOCOL_PREFIX } from "../../graph-hosts/host.ts";
import { listActiveRuns } from "../../storage/runs.ts";
import type { ThreadRow } from "../../storage/schema.ts";
import { findThread, isThreadId } from "../../storage/threads.ts";
import { type ProtocolEvent, ProtocolEvents, selector, seqBefore, seqOf, splitSeq } from "./protocol-events.ts";
import {
  type Replay,
  type RunWatch,
  replayForPython,
  toPythonEvent,
  UnwatchedRuns,
  waitsForEnd,
} from "./python-client.ts";

/** A client that has lost its connection, or opens its stream only after its run has started, does so within this time. */
const RECENT_MS = 10_000;
/** Maximum number of runs whose end is known to have been read. */
const MAX_READ_ENDS = 10_000;
const isRequest = ({ event }: ThreadEvent): boolean => event.split("|")[0] === `${PROTOCOL_PREFIX}input.requested`;

/** Maximum number of queued runs with which a stream without a position begins. */
const MAX_QUEUED = 10;

/** Interval at which a reader looks for a thread that does not exist yet, in addition to notifications. */
const POLL_MS = 200;

/** The events of threads in the form of the thread protocol. */
export class ThreadStreams {
  readonly #context: AgentContext;
  readonly #events = new ProtocolEvents();
  /** Runs whose end a reader in this process has received. */
  readonly #readEnds = new Set<string>();
  readonly #unwatchedRuns = new UnwatchedRuns(RECENT_MS);
  readonly #batches = new WeakMap<readonly ThreadEvent[], readonly ProtocolEvent[] | undefined>();

  constructor(context: AgentContext) {
    this.#context = context;
  }

  /**
   * Called when the Python client has started a run.
   *
   * @param since the `seq` of the last event before the run
   */
  startedByPython(thread_id: string, since: number): void {
    this.#unwatchedRuns.add(thread_id, since);
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
    selection: EventSelection,
    options: StreamOptions,
  ): Promise<AsyncGenerator<readonly ProtocolEvent[]>> {
    const { events } = await this.open(caller, thread_id, selection, options);
    return select(events, selector(selection));
  }

  /**
   * Like {@link events}, for all events.
   *
   * @returns the events, and the `seq` after which they begin
   */
  async open(
    caller: Caller,
    thread_id: string,
    { since, channels }: Pick<EventSelection, "since" | "channels">,
    { signal, isPython }: StreamOptions,
  ): Promise<{ after: number; events: AsyncGenerator<readonly ProtocolEvent[]> }> {
    const replay = isPython ? replayForPython(channels) : "ended";
    const startOf = async (thread: ThreadRow) => {
      const start = await this.#startOf(thread, since, replay);
      if (!isPython || !waitsForEnd(channels)) return start;
      watch = this.#unwatchedRuns.watch(thread_id, signal);
      const { missed_since } = watch;
      return since === undefined && missed_since !== undefined ? this.#startOf(thread, missed_since, replay) : start;
    };
    let watch: RunWatch | undefined;
    const adapt = (events: AsyncGenerator<readonly ProtocolEvent[]>) =>
      isPython ? forPython(events, (since) => watch?.ended(since)) : events;
    const thread = await this.#find(caller, thread_id);
    if (!thread) {
      const created = () => this.#created(caller, thread_id, signal);
      return { after: 0, events: adapt(this.#followCreated(created, startOf, signal)) };
    }
    const start = await startOf(thread);
    return { after: seqOf(start), events: adapt(this.#follow(thread, start, signal)) };
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
      const [first] = batch;
      if (first?.mode === "state_update") this.#markRead(thread, first.at);
      const shared = held.length === 0 ? this.#shared(batch) : undefined;
      const events = shared ?? batch.flatMap((event) => this.#ordered(event, held));
      if (events.length > 0) yield events;
    }
  }

  /** Called for the event after a run's end, which is a batch of its own. */
  #markRead({ thread_id }: ThreadRow, { seq }: Position): void {
    this.#readEnds.add(`${thread_id} ${seq}`);
    if (this.#readEnds.size > MAX_READ_ENDS) this.#readEnds.delete(this.#readEnds.values().next().value as string);
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

  async #startOf(thread: ThreadRow, since: number | undefined, replay: Replay): Promise<Position> {
    const { engine, database } = this.#context;
    if (since !== undefined) {
      const { run_seq, event } = splitSeq(since);
      return engine.threadEvents.positionOf(thread, run_seq, event);
    }
    const [last, ...earlier] = await engine.threadEvents.last(thread, MAX_QUEUED);
    if (!last) return engine.threadEvents.now(thread);
    const { ended_at } = last;
    const isRecent = (time: number) => Date.now() - time < RECENT_MS;
    const repeats: Record<Replay, () => boolean> = {
      ended: () => true,
      recent: () => isRecent(ended_at as number),
      unread: () => earlier.length === 0 && !this.#readEnds.has(`${thread.thread_id} ${last.seq}`),
    };
    const isReplayed =
      ended_at === null ||
      ((thread.status === "interrupted" || repeats[replay]()) &&
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
  /** Whether the reader is the official Python client: see python-client.ts. */
  isPython: boolean;
}

async function* forPython(
  batches: AsyncGenerator<readonly ProtocolEvent[]>,
  onEnd: (since: number) => void,
): AsyncGenerator<readonly ProtocolEvent[]> {
  for await (const events of batches) {
    for (const { seq } of events) {
      const { run_seq, event } = splitSeq(seq);
      if (event === Infinity) onEnd(seqBefore({ seq: run_seq }));
    }
    yield events.map(toPythonEvent);
  }
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
