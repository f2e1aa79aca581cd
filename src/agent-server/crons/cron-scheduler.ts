import type { Caller } from "../../platform/contract/caller.ts";
import { readNow, sealedOf, type Tx } from "../../platform/database/database.ts";
import { DatabaseUnavailableError, isUnavailable } from "../../platform/database/database-errors.ts";
import { inEncryptionContext, NO_CONTEXT } from "../../platform/database/encrypted-database.ts";
import { ApiError } from "../../platform/errors.ts";
import type { BackgroundService } from "../../platform/lib/background-service.ts";
import type { JsonObject } from "../../platform/lib/json/json.ts";
import type { Log } from "../../platform/lib/log.ts";
import { Signal, withTimeout } from "../../platform/lib/signal.ts";
import type { AgentContext } from "../context.ts";
import type { Runs } from "../runs/runs.ts";
import { mayClaimAsRollout } from "../storage/claims/claims.ts";
import { advanceCron, type DueCron, disableDueCron, findNextTick, listDueCrons } from "../storage/crons.ts";
import type { RunRow } from "../storage/schema.ts";
import { lockThreadId } from "../storage/threads.ts";
import { payloadOf } from "./crons.ts";
import { nextTick } from "./schedule.ts";

/** Maximum time between two sweeps. It bounds the delay after a lost hint, a failed sweep or the activation of a rollout. */
const MAX_WAIT_MS = 5_000;

/** A tick is missed if it is handled later than this: no process was running, or the database was unavailable. */
const MAX_DELAY_MS = 60_000;

/** Time until the next attempt for a cron whose run could not be created because of the database. */
const DELAY_MS = 1_000;

/**
 * Maximum number of crons per sweep, of crons without a thread per transaction, and of concurrent transactions. One transaction per cron takes
 * three times as long on Postgres: 167 crons in 1.3 s.
 */
const BATCH = { size: 500, together: 10, concurrent: 8 };

export interface CronSchedulerOptions {
  context: Pick<AgentContext, "database" | "engine" | "auth">;
  runs: Runs;
  /** What to do about the missed ticks of a cron: create no run, or one run for all of them. */
  missed: "skip" | "last";
  /** Rollout of this instance; undefined outside a deployment. While another rollout is active, this instance creates no runs. */
  rollout: number | undefined;
  log: Log;
}

/**
 * Creates the runs of crons. Any number of processes may do this: the transaction that inserts a run also moves the cron from this tick
 * to the next one, so each tick creates at most one run.
 */
export class CronScheduler implements BackgroundService {
  readonly #options: CronSchedulerOptions;
  readonly #changed = new Signal();
  readonly #removeListener: () => void;
  #isStopped = false;
  /** Whether a cron of this sweep stays due. */
  #isDelayed = false;
  #loop: Promise<void> | undefined;

  constructor(options: CronSchedulerOptions) {
    this.#options = options;
    this.#removeListener = options.context.database.hints.listen("crons", this.#changed.notify);
  }

  start(): void {
    this.#loop = this.#run();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#removeListener();
    this.#changed.notify();
    if (this.#loop) await withTimeout(this.#loop, MAX_WAIT_MS);
  }

  async #run(): Promise<void> {
    const { log } = this.#options;
    while (!this.#isStopped) {
      this.#changed.reset();
      const wait_ms = await this.#sweep().catch((error) => {
        if (!this.#isStopped) log.error({ error }, "cron sweep failed");
        return MAX_WAIT_MS;
      });
      if (wait_ms > 0 && !this.#isStopped) await this.#changed.wait(wait_ms);
    }
  }

  /** Creates the runs that are due. Returns the time until the next sweep. */
  async #sweep(): Promise<number> {
    const { context, rollout } = this.#options;
    const { read } = context.database;
    if (rollout !== undefined && !(await mayClaimAsRollout(read, rollout))) return MAX_WAIT_MS;
    this.#isDelayed = false;
    const due = await listDueCrons(sealedOf(context.database).read, BATCH.size);
    // With encryption, each cron has a transaction of its own, because each has its own encryption context.
    const groups = context.database.encryption ? due.map((cron) => [cron]) : groupsOf(due);
    for (let i = 0; i < groups.length && !this.#isStopped; i += BATCH.concurrent)
      await Promise.all(groups.slice(i, i + BATCH.concurrent).map((crons) => this.#handleAll(crons)));
    if (this.#isDelayed) return DELAY_MS;
    if (due.length === BATCH.size) return 0;
    const next = await findNextTick(read);
    if (next?.next_at == null) return MAX_WAIT_MS;
    return Math.min(MAX_WAIT_MS, Math.max(1, next.next_at - (await readNow(read))));
  }

  async #handleAll(crons: readonly DueCron[]): Promise<void> {
    try {
      for (const [i, fired] of (await this.#fire(crons)).entries()) this.#report(crons[i] as DueCron, fired);
    } catch (error) {
      if (error instanceof DatabaseUnavailableError) throw error;
      // One failure rolls back all of them.
      if (crons.length > 1) for (const cron of crons) await this.#handleAll([cron]);
      else await this.#handleFailure(crons[0] as DueCron, error);
    }
  }

  #report(cron: DueCron, fired: Fired | undefined): void {
    const { log } = this.#options;
    const fields = { cron_id: cron.cron_id, tick: new Date(cron.next_at).toISOString() };
    if (fired?.run)
      log.info({ ...fields, run_id: fired.run.run_id, thread_id: fired.run.thread_id }, "cron run created");
    else if (fired) log.warn({ ...fields, ...fired.missed }, "cron tick missed");
  }

  async #handleFailure(cron: DueCron, error: unknown): Promise<void> {
    const { context, log } = this.#options;
    const fields = { cron_id: cron.cron_id, tick: new Date(cron.next_at).toISOString() };
    if (isUnavailable(error)) {
      // For example, the thread is locked. The cron stays due.
      log.warn({ ...fields, error }, "cron run delayed: the database refused or could not finish a query");
      this.#isDelayed = true;
      return;
    }
    // For example, the thread is busy and the strategy is `reject`, or the graph is not available any more. The cron must not stay due: it
    // would take the place of others in each sweep.
    log.warn({ ...fields, error: error instanceof ApiError ? error.message : error }, "cron run not created");
    await context.database.write(async (tx) => {
      const now = await readNow(tx);
      let tick: number | null;
      try {
        tick = tickAfter(cron, now);
      } catch (reason) {
        // For example, the time zone is unknown to this version of Node.js. If the cron stayed enabled, the error would end every sweep.
        log.error({ ...fields, error: reason }, "cron disabled: its schedule or time zone is invalid");
        await disableDueCron(tx, dueOf(cron));
        return;
      }
      await advanceCron(tx, dueOf(cron), tick);
    });
  }

  /**
   * Creates the runs in one transaction, or skips missed ticks.
   *
   * @returns by cron; undefined if another process has handled the tick
   */
  async #fire(crons: readonly DueCron[]): Promise<(Fired | undefined)[]> {
    const { encryption } = this.#options.context.database;
    const [cron] = crons;
    if (!encryption || !cron) return this.#insertAll(crons);
    const context = (await encryption.open(cron)) ?? NO_CONTEXT;
    return inEncryptionContext(context, () => this.#insertAll(crons));
  }

  async #insertAll(crons: readonly DueCron[]): Promise<(Fired | undefined)[]> {
    const { context, runs } = this.#options;
    const { database, engine } = context;
    const requests = await Promise.all(crons.map((cron) => requestOf(cron, runs, context.auth)));
    const all = await database.write(
      async (tx) => {
        const fired: (Fired | undefined)[] = [];
        for (const request of requests) fired.push(await this.#insert(tx, request));
        return fired;
      },
      { kind: "runs", isNew: true },
    );
    for (const fired of all) {
      if (fired) engine.publishCancels(fired.cancels);
    }
    return all;
  }

  async #insert(tx: Tx, { cron, caller, assistant, body }: TickRequest): Promise<Fired | undefined> {
    const { runs, missed } = this.#options;
    // Locked first, as in every transaction on a thread's runs, to prevent deadlocks.
    const { tenant_id, thread_id } = cron;
    if (thread_id !== null) await lockThreadId(tx, { tenant_id, thread_id });
    const now = await readNow(tx);
    const next = tickAfter(cron, now);
    if ((await advanceCron(tx, dueOf(cron), next)) === 0) return undefined;
    const delay_ms = now - cron.next_at;
    if (missed === "skip" && delay_ms > MAX_DELAY_MS)
      return { missed: { delay_ms, next_tick: next === null ? null : new Date(next).toISOString() }, cancels: [] };
    if (cron.thread_id !== null)
      return runs.addToThread(tx, caller, assistant, cron.thread_id, { ...body, if_not_exists: "reject" });
    const on_completion = cron.on_run_completed ?? "delete";
    return { run: await runs.addStateless(tx, caller, assistant, { ...body, on_completion }), cancels: [] };
  }
}

/** A cron on a thread has a transaction of its own, because each transaction locks at most one thread. */
function groupsOf(due: readonly DueCron[]): DueCron[][] {
  const groups = due.filter(({ thread_id }) => thread_id !== null).map((cron) => [cron]);
  const others = due.filter(({ thread_id }) => thread_id === null);
  for (let i = 0; i < others.length; i += BATCH.together) groups.push(others.slice(i, i + BATCH.together));
  return groups;
}

type TickRequest = Awaited<ReturnType<typeof requestOf>>;

async function requestOf(cron: DueCron, runs: Runs, auth: AgentContext["auth"]) {
  const { caller, metadata } = await authorizeTick(cron, auth);
  const assistant = await runs.requireAssistant(caller, cron.assistant_id);
  return { cron, caller, assistant, body: { ...payloadOf(cron), metadata, strict_resume: false } };
}

/** The run of a tick, or why there is none. */
type Fired = Pick<Awaited<ReturnType<Runs["addToThread"]>>, "cancels"> &
  ({ run: RunRow; missed?: never } | { run?: never; missed: { delay_ms: number; next_tick: string | null } });

/** Returns the next tick that is not missed. It may be due already if the handled tick was missed. */
const tickAfter = (cron: DueCron, now: number): number | null =>
  // One millisecond earlier, because `nextTick` excludes its start and a tick with exactly the maximum delay is not missed.
  nextTick(cron, Math.max(cron.next_at, now - MAX_DELAY_MS - 1));

/** Calls the authorization handlers for each run, because the permissions of the user may have changed since the cron was created. */
async function authorizeTick(cron: DueCron, auth: AgentContext["auth"]) {
  const { tenant_id, user_id, cron_id, thread_id, assistant_id } = cron;
  const metadata = { ...JSON.parse(cron.metadata), cron_id } as JsonObject;
  const caller: Caller = { tenant_id, user_id, scopes: JSON.parse(cron.scopes) };
  if (cron.auth_user === null) return { caller, metadata };
  if (!auth) throw new ApiError("auth_failed", {}, new Error("auth.path is no longer set"));
  const user = { ...caller, user: JSON.parse(cron.auth_user) };
  const payload = { ...payloadOf(cron), assistant_id, metadata };
  return auth.authorizeRun(user, payload, thread_id ?? undefined);
}

const dueOf = ({ cron_id, next_at }: DueCron) => ({ cron_id, due: next_at });
