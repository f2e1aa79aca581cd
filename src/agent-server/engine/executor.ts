import { LeaseLostError } from "../../platform/errors.ts";
import { cleanJsonText } from "../../platform/lib/json/json.ts";
import { isDisconnected, whenAvailable } from "../../platform/lib/unavailable.ts";
import type {
  AbortReason,
  CheckpointWrite,
  FromHost,
  HostOutcome,
  HostRequest,
  RunOrder,
  StateSummary,
} from "../graph-hosts/host.ts";
import type { HostPool, PooledHost } from "../graph-hosts/pool.ts";
import { lastEventSeq } from "../storage/events.ts";
import { returnRunIfHeld } from "../storage/run-leases.ts";
import { findRun } from "../storage/runs.ts";
import type { RunRow } from "../storage/schema.ts";
import type { EventLog } from "./event-log.ts";
import type { Feed } from "./feed.ts";
import { type HostRequestOptions, HostRequests } from "./host-requests.ts";
import { Journal, type Unwritten } from "./journal.ts";
import { MAX_ATTEMPTS, MAX_CRASHES, verdictOn } from "./run-endings.ts";
import { beginningOf, isAnnounced, metadataEvent, orderOf } from "./run-start.ts";
import { type Settlement, settle } from "./settle.ts";
import { takeThread } from "./take-thread.ts";

export interface ExecutorOptions extends HostRequestOptions {
  events: EventLog;
  pool: HostPool;
  cancel_grace_ms: number;
  run_timeout_ms: number;
  /** The state of a thread, read without the host that executed its run. */
  readState(run: RunRow): Promise<StateSummary | undefined>;
  /** The run is over, handed back or lost: there is room for another. */
  onDone(executor: Executor): void;
}

/** A run for which there is no host right now is tried again after this. */
const NO_HOST_DELAY_MS = 250;
/** The same for one whose database was away. */
const DATABASE_DELAY_MS = 500;
/** The end of a run is written again and again for this long while the database is away; then the run is left to the rescue. */
const MAX_WAIT_MS = 30_000;

/**
 * One claimed run from its start in a graph host to its end in the database. It ends in one of three ways:
 * settled, handed back to the queue, or lost to another worker; in each the executor then falls silent.
 */
export class Executor {
  readonly run: RunRow;
  readonly #options: ExecutorOptions;
  readonly #feed: Feed;
  readonly #journal: Journal;
  readonly #requests: HostRequests;
  /** Why the graph was told to stop. */
  #stopping: AbortReason | undefined;
  /** Why a write failed, other than by the fence. */
  #write_failure: unknown;
  /** The database was away when the graph read from it. */
  #read_failure: unknown;
  /** The fence has refused a write. */
  #refused = false;
  #ended: Promise<void> | undefined;
  /** When the lease was last known to be held, by performance.now(). */
  held_at: number;
  readonly #timers: NodeJS.Timeout[] = [];

  constructor(run: RunRow, held_at: number, options: ExecutorOptions) {
    this.run = run;
    this.held_at = held_at;
    this.#options = options;
    this.#feed = options.events.hold(run.run_id);
    this.#journal = new Journal({
      database: options.database,
      run,
      feed: this.#feed,
      onFailure: (error) => this.#onWriteFailure(error),
    });
    this.#requests = new HostRequests(run, this.#journal, options);
  }

  /**
   * Gives the run to a host. When none has room after all, or the database fails, the run goes back at no cost: a run that
   * stayed here without a host would keep its lease for ever.
   *
   * @param stopped an earlier execution of the run in this process is over
   */
  async start(stopped: Promise<void> | undefined): Promise<void> {
    const { pool, log } = this.#options;
    const order = orderOf(this.run);
    // Before anything is awaited, so that the next claim knows how much room is left.
    const host = pool.reserve(order, { alone: this.run.crashes > 0 });
    let isSent = false;
    try {
      await stopped;
      isSent = await this.#begin(order, host);
    } catch (error) {
      log.error({ error, run_id: this.run.run_id }, "a run could not be started; it goes back");
      await this.giveBack(NO_HOST_DELAY_MS);
    } finally {
      // A host that was never told of the run will not say that it is done.
      if (host && !isSent) pool.release(this.run, host);
    }
  }

  /** @returns whether the host has been told to start; if not, the run is over or on its way back */
  async #begin(order: RunOrder, host: PooledHost | undefined): Promise<boolean> {
    const { database, run_timeout_ms } = this.#options;
    const { run_id, epoch, thread_before, start_at, created_at } = this.run;
    // Others may have run on the thread since this one was accepted.
    if (thread_before === null || start_at > created_at) await takeThread(database, this.run);
    // An earlier claim may have left events, also one that was handed back and is not counted as an attempt.
    const seq = epoch > 1 ? await lastEventSeq(database.read, run_id) : 1;
    this.#journal.continueAfter(seq);
    this.#feed.live = true;
    // Hosts for a run of its own are few: it waits for its turn.
    if (!host) {
      await this.giveBack(NO_HOST_DELAY_MS);
      return false;
    }
    const metadata = metadataEvent(this.run, seq);
    if (!isAnnounced(this.run, seq)) this.#journal.append([[metadata.event, metadata.data]]);
    else if (epoch === 1) this.#feed.publish([metadata]);
    const { head, begun, last } = await beginningOf(database, this.run, order);
    if (last) this.#journal.beginWith(last);
    if (this.#ended) return false;
    host.send({ type: "start", order, head, begun });
    this.#after(run_timeout_ms, () => void this.stop("timeout"));
    // It was told to stop before the host knew of it.
    if (this.#stopping) host.send({ type: "abort", run_id, epoch, reason: this.#stopping });
    return true;
  }

  onEvents(events: [string, string][]): void {
    this.#journal.append(events.map(([event, data]) => [event, cleanJsonText(data)]));
  }

  /** A line that the graph has logged. */
  onLog({ level, message, fields }: Extract<FromHost, { type: "log" }>): void {
    const { run_id, thread_id, assistant_id, graph_id } = this.run;
    this.#options.log[level]({ ...JSON.parse(fields), run_id, thread_id, assistant_id, graph_id }, message);
  }

  /** Stores what the graph's checkpointer does not wait for. A failure shows when the run ends. */
  onStore(write: CheckpointWrite): void {
    this.#requests.store(write);
  }

  /** What the graph and its checkpointer ask for. */
  onRequest(request: HostRequest): Promise<unknown> {
    return this.#requests.answer(request);
  }

  /** The graph could not read what it asked for: should it fail, that is why. */
  onReadFailure(error: unknown): void {
    this.#read_failure = error;
  }

  /** Stops the run: the graph gets the signal, and after a grace it is given up. Resolves when a run whose lease is lost is over here. */
  async stop(reason: AbortReason): Promise<void> {
    if (this.#ended || (this.#stopping && reason !== "lease_lost")) return this.#ended;
    this.#stopping = reason;
    const { run_id, epoch } = this.run;
    this.#options.pool.sendToRun(run_id, { type: "abort", run_id, epoch, reason });
    if (reason === "lease_lost") return this.#end(async () => undefined);
    this.#after(this.#options.cancel_grace_ms, () => void this.#settleWithoutHost());
  }

  /** Asks the graph to stop at the next step boundary; then the run goes back to the queue. */
  drain(): void {
    const { run_id, epoch } = this.run;
    this.#options.pool.sendToRun(run_id, { type: "drain", run_id, epoch });
  }

  /** The graph has come to an end in its host. */
  async onDone(outcome: HostOutcome, host: PooledHost): Promise<void> {
    await this.#end(() => this.#conclude(outcome));
    this.#options.pool.release(this.run, host);
  }

  /** The host died with the run in it. */
  async onHostLost(reason: string): Promise<void> {
    const { crashes } = this.run;
    if (this.#stopping) return this.#settleWithoutHost();
    if (crashes + 1 >= MAX_CRASHES) {
      const message = `The graph host died ${crashes + 1} times while it executed this run: ${reason}.`;
      return this.#settleWithoutHost({ error: "GraphHostError", message });
    }
    // 0.5 s, then 1 s: whatever brought the host down may need a moment.
    await this.#end(() => this.#return({ spent: 1, crashed: 1, delay_ms: 500 * 2 ** crashes }));
  }

  /** Puts the run back into the queue at no cost: it has not begun, or has stopped between two steps. */
  giveBack(delay_ms = 0): Promise<void> {
    return this.#end(() => this.#return({ spent: 0, crashed: 0, delay_ms }));
  }

  async #conclude(outcome: HostOutcome): Promise<void> {
    if (outcome.ended === "drained" && !this.#stopping) return this.#return({ spent: 0, crashed: 0, delay_ms: 0 });
    const unwritten = await this.#journal.close();
    const failure = this.#write_failure ?? (outcome.ended === "error" ? this.#read_failure : undefined);
    if (failure !== undefined) {
      // That the database is away says nothing about the run.
      const spent = isDisconnected(failure) ? 0 : 1;
      if (this.run.attempt < MAX_ATTEMPTS) return this.#return({ spent, crashed: 0, delay_ms: DATABASE_DELAY_MS });
      const message = `The database failed in attempt ${this.run.attempt}; the server's log has the reason.`;
      return this.#settle({ ...outcome, ended: "error", error: { error: "DatabaseError", message } }, unwritten);
    }
    // After a cancel its last steps are refused.
    const isWhole = !this.#refused && !(this.#stopping === "cancelled" && unwritten.steps.length > 0);
    try {
      if (isWhole) return await this.#settle(outcome, unwritten);
    } catch (error) {
      if (!(error instanceof LeaseLostError)) throw error;
    }
    await this.#learnWhy();
    // What a graph that ran to its end says of its state includes them.
    const state = outcome.ended === "success" ? await this.#options.readState(this.run) : outcome.state;
    await this.#settle({ ...outcome, output: state?.values ?? outcome.output, state }, { ...unwritten, steps: [] });
  }

  /** Ends a run whose host is gone or does not listen: its state is what it last committed. */
  async #settleWithoutHost(error?: HostOutcome["error"]): Promise<void> {
    await this.#end(async () => {
      await this.#journal.written();
      const state = await this.#options.readState(this.run);
      const outcome: HostOutcome = {
        ended: error ? "error" : "aborted",
        output: state?.values ?? "null",
        state,
        error,
      };
      await this.#settle(outcome, await this.#journal.close());
    });
  }

  async #settle(outcome: HostOutcome, { events, steps }: Unwritten): Promise<void> {
    const { state } = outcome;
    const { status, thread_status, output, event } = verdictOn(outcome, this.#stopping);
    const settlement: Settlement = {
      run: this.run,
      status,
      thread_status,
      cancelled: this.#stopping === "cancelled",
      output: cleanJsonText(output),
      state: state && { ...state, values: cleanJsonText(state.values), interrupts: cleanJsonText(state.interrupts) },
      error: event ? cleanJsonText(event[1]) : null,
      unwritten: { events: event ? [...events, this.#journal.number(event)] : events, steps },
    };
    await this.#untilWritten(() => settle(this.#options.database, this.#options.events, settlement));
  }

  /** A commit whose answer was lost is not repeated: the epoch has changed, or the run has ended. */
  #untilWritten<T>(write: () => Promise<T>): Promise<T> {
    const deadline = performance.now() + MAX_WAIT_MS;
    return whenAvailable(() => performance.now() > deadline, write);
  }

  async #return(cost: { spent: 0 | 1; crashed: 0 | 1; delay_ms: number }): Promise<void> {
    const { database } = this.#options;
    await this.#journal.written();
    await this.#journal.close();
    await this.#untilWritten(() => database.write((tx) => returnRunIfHeld(tx, { ...this.run, ...cost })));
    database.hints.emit({ kind: "runs", in_ms: cost.delay_ms });
  }

  /** Runs the last thing that happens to the run here, once. */
  #end(work: () => Promise<void>): Promise<void> {
    this.#ended ??= this.#endWith(work);
    return this.#ended;
  }

  async #endWith(work: () => Promise<void>): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#requests.close();
    try {
      await work();
    } catch (error) {
      // The row still says running: when the lease runs out, the run is rescued.
      this.#options.log.error({ error, run_id: this.run.run_id }, "a run could not be ended; it will be rescued");
    }
    await this.#journal.close();
    this.#feed.live = false;
    // Who still waits looks into the database from here on.
    this.#feed.wake();
    this.#options.events.release(this.run.run_id, this.#feed);
    this.#options.onDone(this);
  }

  #onWriteFailure(error: unknown): void {
    if (error instanceof LeaseLostError) this.#refused = true;
    else this.#write_failure = error;
  }

  /** The fence closes before the hint of a cancel arrives, and the graph may fail over it: the row says what it was. */
  async #learnWhy(): Promise<void> {
    const row = await findRun(this.#options.database.read, this.run);
    // Also when it was to stop for another reason: only a settlement that knows of the cancel can end it.
    if (row?.epoch === this.run.epoch && row.cancel_action !== null) this.#stopping = "cancelled";
  }

  #after(ms: number, work: () => void): void {
    this.#timers.push(setTimeout(work, ms).unref());
  }
}
