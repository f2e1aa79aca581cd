import type { Caller } from "../platform/contract/caller.ts";
import type { Tx } from "../platform/database/database.ts";
import { ApiError } from "../platform/errors.ts";
import { type CancelIntent, cancelLocked, type PendingCancel } from "./cancel.ts";
import type { AgentContext } from "./context.ts";
import type { RunCancelMany } from "./contract/runs.ts";
import { findRun, listActiveRunsOfTenant, lockRun } from "./storage/runs.ts";
import type { RunRow } from "./storage/schema.ts";
import { lockThread } from "./storage/threads.ts";
import { lockRunAndThread } from "./thread-access.ts";

/** Runs that a cancel by status takes at a time. */
const BATCH = 200;

type RunKey = Pick<RunRow, "run_id" | "thread_id" | "tenant_id">;

/** Stopping runs, one or many. What is answered is durable: from then on no step of those runs is committed. */
export class Cancellations {
  readonly #context: AgentContext;

  constructor(context: AgentContext) {
    this.#context = context;
  }

  /**
   * Cancels a run, and keeps (`interrupt`) or undoes (`rollback`) what it has done. Returns as soon as the intent is
   * durable, or with `wait` when the run has stopped.
   *
   * @throws ApiError run_not_found; run_ended, also for a paused run
   */
  async cancel(
    caller: Caller,
    thread_id: string,
    run_id: string,
    intent: CancelIntent,
    wait?: AbortSignal,
  ): Promise<void> {
    const run = { tenant_id: caller.tenant_id, thread_id, run_id };
    await this.#write(async (tx) => [await cancelLocked(tx, requireActive(await lockRunAndThread(tx, run)), intent)]);
    if (wait) await this.#context.engine.events.ending(run, wait);
  }

  /**
   * Cancels runs of one thread, all or none, or all runs of the tenant with a status.
   *
   * @throws ApiError run_not_found or run_ended for the first of `run_ids` that cannot be cancelled
   */
  async cancelMany({ tenant_id }: Caller, selection: RunCancelMany, intent: CancelIntent): Promise<void> {
    if ("status" in selection) return this.#cancelByStatus(tenant_id, selection.status, intent);
    const { thread_id, run_ids } = selection;
    await this.#write(async (tx) => {
      const runs = [];
      for (const run_id of new Set(run_ids))
        runs.push(requireActive(await lockRunAndThread(tx, { tenant_id, thread_id, run_id })));
      const cancels = [];
      // The newest first: each is undone on top of what was there when it was accepted.
      for (const run of runs.sort((a, b) => b.seq - a.seq)) cancels.push(await cancelLocked(tx, run, intent));
      return cancels;
    });
  }

  /** For a client that is gone: a run that has ended meanwhile is left alone. */
  async cancelIfActive(run: RunKey): Promise<void> {
    const row = await findRun(this.#context.database.read, run);
    if (row && row.ended_at === null)
      await this.#cancelSelected([row], () => true, { action: "interrupt", reason: null });
  }

  /** Runs that are accepted meanwhile are not among them; each is cancelled in a transaction of its own. */
  async #cancelByStatus(tenant_id: string, status: "pending" | "running" | "all", intent: CancelIntent): Promise<void> {
    const isMeant = (run: RunRow) => status === "all" || run.status === status;
    let before: number | undefined;
    for (;;) {
      const found = await listActiveRunsOfTenant(this.#context.database.read, { tenant_id, before, limit: BATCH });
      await this.#cancelSelected(found, isMeant, intent);
      before = found.at(-1)?.seq;
      if (found.length < BATCH) return;
    }
  }

  async #cancelSelected(runs: RunRow[], isMeant: (run: RunRow) => boolean, intent: CancelIntent): Promise<void> {
    await Promise.all(
      runs.map((run) =>
        this.#write(async (tx) => {
          await lockThread(tx, run.tenant_id, run.thread_id);
          const now = await lockRun(tx, run);
          return now && now.ended_at === null && isMeant(now) ? [await cancelLocked(tx, now, intent)] : [];
        }),
      ),
    );
  }

  async #write(work: (tx: Tx) => Promise<PendingCancel[]>): Promise<void> {
    const { database, engine } = this.#context;
    for (const cancel of await database.write(work)) cancel.announce(database, engine.events);
  }
}

function requireActive(run: RunRow): RunRow {
  if (run.ended_at !== null) throw new ApiError("run_ended", { run_id: run.run_id, status: run.status });
  return run;
}
