import type { ScopedDatabase } from "../../../platform/database/database.ts";
import { isDisconnected, retryWhileUnavailable } from "../../../platform/database/database-errors.ts";
import { LeaseLostError } from "../../../platform/errors.ts";
import { cleanJsonText } from "../../../platform/lib/json/json.ts";
import type { AbortReason, FromHost, HostOutcome, RunOrder, StateSummary } from "../../graph-hosts/host.ts";
import type { HostPools } from "../../graph-hosts/language-hosts.ts";
import type { PooledHost } from "../../graph-hosts/pool.ts";
import { lastEventSeq } from "../../storage/events.ts";
import { returnRunIfHeld } from "../../storage/run-leases.ts";
import { findRun } from "../../storage/runs.ts";
import type { RunRow } from "../../storage/schema.ts";
import { type SettleContext, type Settlement, settle } from "../settlement/settle.ts";
import { isEncryptionFailure, openRun, settleUnencrypted, withoutErrorTexts } from "../settlement/unencrypted.ts";
import { ISOLATED_FROM, MAX_ATTEMPTS, MAX_CRASHES, verdictOn } from "../settlement/verdict.ts";
import type { Feed } from "../streams/feed.ts";
import { bindThread } from "./bind-thread.ts";
import { type HostRequestOptions, HostRequests } from "./host-requests.ts";
import { Journal, type Unwritten } from "./journal.ts";
import { hasMetadataEvent, loadResumePoint, metadataEvent, orderOf, refusalOf } from "./resume-point.ts";

export interface ExecutorOptions extends HostRequestOptions, SettleContext {
  pool: HostPools;
  cancel_grace_ms: number;
  run_timeout_ms: number;
  /** Reads the state of a run's thread in the reader host. */
  readState(run: RunRow): Promise<StateSummary | undefined>;
  /** Called when the run has been settled, handed back or lost. */
  onDone(executor: Executor): void;
}

/** Delay of a run that returns to the queue because no host is free or the start failed. */
const NO_HOST_DELAY_MS = 250;
/** Delay of a run that returns to the queue because the database failed. */
const DATABASE_DELAY_MS = 500;
/** Maximum time for retries of a run's final write. If all fail, the rescue (run-leases.ts) requeues or ends the run. */
const MAX_RETRY_MS = 30_000;

/** Executes one claimed run until it is settled, handed back to the queue, or lost to another worker. */
export class Executor {
  readonly run: RunRow;
  readonly #options: ExecutorOptions;
  /** If values are encrypted: the database with the encryption context of the run. */
  readonly #scoped: ScopedDatabase | undefined;
  readonly #feed: Feed;
  readonly #journal: Journal;
  readonly requests: HostRequests;
  /** Reason for the abort that was sent to the graph. */
  #stopping: AbortReason | undefined;
  /** Error of a failed write, unless the fence refused the write. */
  #write_failure: unknown;
  /** Error of a read that the graph requested while the database was unavailable. */
  #read_failure: unknown;
  #isRefused = false;
  #ended: Promise<void> | undefined;
  /** Time of the last confirmation of the lease, from performance.now(). */
  held_at: number;
  readonly #timers: NodeJS.Timeout[] = [];

  constructor(run: RunRow, held_at: number, options: ExecutorOptions) {
    this.run = run;
    this.held_at = held_at;
    this.#scoped = options.database.encryption?.scoped();
    const database = this.#scoped ?? options.database;
    this.#options = { ...options, database };
    this.#feed = options.events.hold(run.run_id);
    this.#journal = new Journal({
      database,
      run,
      feed: this.#feed,
      onFailure: (error) => this.#onWriteFailure(error),
    });
    this.requests = new HostRequests(run, this.#journal, this.#options);
  }

  /**
   * Sends the run to a host. Without a free host, or after a database error, the run returns to the queue, because
   * otherwise this process would keep the run's lease forever. The attempt is not counted.
   *
   * @param stopped resolves once a previous execution of the run in this process has stopped
   */
  async start(stopped: Promise<void> | undefined): Promise<void> {
    const { pool, log } = this.#options;
    const order = orderOf(this.run);
    // Reserved before the first await, so that the next claim is limited to the remaining slots.
    const host = pool.reserve(order, { isolated: this.run.crashes > 0 || this.run.attempt >= ISOLATED_FROM });
    let isSent = false;
    try {
      await stopped;
      isSent = await this.#begin(order, host);
    } catch (error) {
      if (isEncryptionFailure(error)) return await this.#end(() => Promise.reject(error));
      log.error({ error, run_id: this.run.run_id }, "starting the run failed; returning it to the queue");
      // Not handBack(): with encryption, a run that was not opened cannot be settled.
      await this.#end(() => this.#return({ spent: 0, crashed: 0, delay_ms: NO_HOST_DELAY_MS }));
    } finally {
      // A host that did not receive the run never reports its end.
      if (host && !isSent) pool.release(this.run, host);
    }
  }

  /** @returns whether the order was sent; if not, the run has ended or returns to the queue */
  async #begin(order: RunOrder, host: PooledHost | undefined): Promise<boolean> {
    const { database, run_timeout_ms } = this.#options;
    const { run_id, epoch, thread_snapshot, start_at, created_at } = this.run;
    if (this.#scoped) {
      await openRun(this.#scoped, this.run);
      order.kwargs = orderOf(this.run).kwargs;
    }
    // Other runs may have started on the thread since this one was accepted.
    if (thread_snapshot === null || start_at > created_at) await bindThread(database, this.run);
    // A previous claim may have stored events, even if the run was handed back.
    const seq = epoch > 1 ? await lastEventSeq(database.read, run_id) : 1;
    this.#journal.continueAfter(seq);
    this.#feed.begin(epoch, seq);
    if (!host) {
      await this.handBack(NO_HOST_DELAY_MS);
      return false;
    }
    const metadata = metadataEvent(this.run, seq);
    if (!hasMetadataEvent(this.run, seq)) this.#journal.append([[metadata.event, metadata.data]]);
    else if (epoch === 1) this.#feed.publish([metadata]);
    const { head, begun, resume_consumed, base } = await loadResumePoint(database, this.run, order);
    if (base) this.#journal.setDeltaBase(base);
    if (this.#ended) return false;
    const language = this.#options.pool.languageOf(order.graph_id);
    const refused = await refusalOf(database.read, this.run, { head, kwargs: order.kwargs, language });
    if (refused) {
      const outcome = { ended: "error", output: "null", state: undefined, error: refused.error } as const;
      await this.#end(async () => this.#settle(outcome, await this.#journal.close(), refused.thread_status));
      return false;
    }
    const trace = this.#options.traces?.begin(this.run, order.kwargs);
    host.send({ type: "start", order, head, prior_writes: begun, resume_consumed, trace });
    this.#after(run_timeout_ms, () => void this.stop("timeout"));
    // stop() was called before the host received the run.
    if (this.#stopping) host.send({ type: "abort", run_id, epoch, reason: this.#stopping });
    return true;
  }

  onEvents(events: [string, string][]): void {
    this.#journal.append(events.map(([event, data]) => [event, cleanJsonText(data)]));
  }

  onLog({ level, message, fields }: Extract<FromHost, { type: "log" }>): void {
    const { run_id, thread_id, assistant_id, graph_id } = this.run;
    const shown = this.#scoped ? withoutErrorTexts(JSON.parse(fields)) : JSON.parse(fields);
    this.#options.log[level]({ ...shown, run_id, thread_id, assistant_id, graph_id }, message);
  }

  /** If the graph fails after a failed read, the run returns to the queue; after the last attempt it ends with a `DatabaseError`. */
  onReadFailure(error: unknown): void {
    this.#read_failure = error;
  }

  /** Aborts the graph, and settles the run without its host after the grace period. With `lease_lost`, stops executing it at once. */
  async stop(reason: AbortReason): Promise<void> {
    if (this.#ended || (this.#stopping && reason !== "lease_lost")) return this.#ended;
    this.#stopping = reason;
    const { run_id, epoch } = this.run;
    this.#options.pool.sendToRun(run_id, { type: "abort", run_id, epoch, reason });
    if (reason === "lease_lost") return this.#end(async () => undefined);
    this.#after(this.#options.cancel_grace_ms, () => void this.#settleWithoutHost());
  }

  /** Stops the run at its next step; the run then returns to the queue. */
  drain(): void {
    const { run_id, epoch } = this.run;
    this.#options.pool.sendToRun(run_id, { type: "drain", run_id, epoch });
  }

  async onDone(outcome: HostOutcome, host: PooledHost): Promise<void> {
    // A node that was aborted stores nothing.
    if (outcome.ended !== "aborted") this.requests.finish();
    await this.#end(() => this.#conclude(outcome));
    this.#options.pool.release(this.run, host);
  }

  /** Ends a run whose host died, or returns it to the queue. */
  async onHostLost(reason: string): Promise<void> {
    const { crashes } = this.run;
    this.#options.traces?.onHostLost(this.run);
    if (this.#stopping) return this.#settleWithoutHost();
    if (crashes + 1 >= MAX_CRASHES) {
      const message = `The graph host failed ${crashes + 1} times while executing this run. Reason for the last failure: ${reason}.`;
      return this.#settleWithoutHost({ error: "GraphHostError", message });
    }
    // 0.5 s, then 1 s: the cause of the crash may be temporary.
    await this.#end(() => this.#return({ spent: 1, crashed: 1, delay_ms: 500 * 2 ** crashes }));
  }

  /** Returns the run to the queue before it has started, or when its step takes longer than a drain allows. A stopped run ends instead. */
  handBack(delay_ms = 0): Promise<void> {
    if (this.#stopping) return this.#settleWithoutHost();
    return this.#end(() => this.#return({ spent: 0, crashed: 0, delay_ms }));
  }

  async #conclude(outcome: HostOutcome): Promise<void> {
    if (outcome.ended === "drained" && !this.#stopping) return this.#return({ spent: 0, crashed: 0, delay_ms: 0 });
    const unwritten = await this.#journal.close();
    const failure = this.#write_failure ?? (outcome.ended === "error" ? this.#read_failure : undefined);
    if (isEncryptionFailure(failure)) throw failure;
    if (failure !== undefined) {
      // The run did not cause the outage, so the attempt is not counted.
      const spent = isDisconnected(failure) ? 0 : 1;
      if (this.run.attempt < MAX_ATTEMPTS) return this.#return({ spent, crashed: 0, delay_ms: DATABASE_DELAY_MS });
      const message = `A database query failed during the last attempt (attempt ${this.run.attempt}). See the server's log for the cause.`;
      return this.#settle({ ...outcome, ended: "error", error: { error: "DatabaseError", message } }, unwritten);
    }
    // The fence refuses the last steps of a cancelled run.
    const isComplete = !this.#isRefused && !(this.#stopping === "cancelled" && unwritten.steps.length > 0);
    try {
      if (isComplete) return await this.#settle(outcome, unwritten);
    } catch (error) {
      if (!(error instanceof LeaseLostError)) throw error;
    }
    await this.#reloadCancelIntent();
    // The state that a completed graph reports includes the refused steps.
    const state = outcome.ended === "success" ? await this.#options.readState(this.run) : outcome.state;
    await this.#settle({ ...outcome, output: state?.values ?? outcome.output, state }, { ...unwritten, steps: [] });
  }

  /** Settles a run whose host died or is not responding, with the last committed state. */
  async #settleWithoutHost(error?: HostOutcome["error"]): Promise<void> {
    await this.#end(async () => {
      await this.#journal.written();
      const state = await this.#options.readState(this.run);
      const ended = error ? "error" : "aborted";
      await this.#settle({ ended, output: state?.values ?? "null", state, error }, await this.#journal.close());
    });
  }

  /** @param thread_status status for the thread; undefined if the outcome determines it */
  async #settle(
    outcome: HostOutcome,
    { events, steps }: Unwritten,
    thread_status?: Settlement["thread_status"],
  ): Promise<void> {
    const { state } = outcome;
    const verdict = verdictOn(outcome, this.#stopping);
    const { status, output, event } = verdict;
    const settlement: Settlement = {
      run: this.run,
      status,
      thread_status: thread_status ?? verdict.thread_status,
      cancelled: this.#stopping === "cancelled",
      output: cleanJsonText(output),
      state: state && { ...state, values: cleanJsonText(state.values), interrupts: cleanJsonText(state.interrupts) },
      error: event ? cleanJsonText(event[1]) : null,
      unwritten: { events: event ? [...events, this.#journal.number(event)] : events, steps },
    };
    await this.#retryWrite(() => settle(this.#options, settlement));
  }

  /** Safe to retry: if a commit succeeded but its response was lost, the epoch has changed or the run has ended. */
  #retryWrite<T>(write: () => Promise<T>): Promise<T> {
    const deadline = performance.now() + MAX_RETRY_MS;
    return retryWhileUnavailable(() => performance.now() > deadline, write);
  }

  async #return(cost: { spent: 0 | 1; crashed: 0 | 1; delay_ms: number }): Promise<void> {
    const { database } = this.#options;
    await this.#journal.written();
    await this.#journal.close();
    await this.#retryWrite(() => database.write((tx) => returnRunIfHeld(tx, { ...this.run, ...cost })));
    database.hints.emit({ kind: "runs", in_ms: cost.delay_ms });
  }

  /** Executes `work` to end the run in this process. Later calls have no effect. */
  #end(work: () => Promise<unknown>): Promise<void> {
    this.#ended ??= this.#endWith(work);
    return this.#ended;
  }

  async #endWith(work: () => Promise<unknown>): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    this.requests.close();
    try {
      await work().catch((error) =>
        this.#retryWrite(() => settleUnencrypted(this.#options, this.run, error, this.#stopping)),
      );
    } catch (error) {
      // The run is still `running` in the database. After its lease has expired, the rescue requeues or ends it.
      this.#options.log.error(
        { error, run_id: this.run.run_id },
        "updating the run failed; the run stays claimed until its lease expires",
      );
    }
    await this.#journal.close();
    this.#options.traces?.onStop(this.run);
    this.#feed.stop();
    this.#options.events.release(this.run.run_id, this.#feed);
    this.#options.onDone(this);
  }

  #onWriteFailure(error: unknown): void {
    if (error instanceof LeaseLostError) this.#isRefused = true;
    else this.#write_failure = error;
  }

  /** The fence refuses writes as soon as a cancel is stored, possibly before its hint arrives, so the intent is read from the row. */
  async #reloadCancelIntent(): Promise<void> {
    const row = await findRun(this.#options.database.read, this.run);
    // Replaces other reasons: only a settlement with `cancelled` can end the run.
    if (row?.epoch === this.run.epoch && row.cancel_action !== null) this.#stopping = "cancelled";
  }

  #after(ms: number, work: () => void): void {
    this.#timers.push(setTimeout(work, ms).unref());
  }
}
