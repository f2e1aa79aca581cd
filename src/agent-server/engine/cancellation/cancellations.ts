import type { Caller } from "../../../platform/contract/caller.ts";
import type { Tx } from "../../../platform/database/database.ts";
import { ApiError } from "../../../platform/errors.ts";
import { filterOf } from "../../auth/grants.ts";
import { requireAccessToRun } from "../../auth/run-access.ts";
import type { RunCancelMany } from "../../contract/runs.ts";
import { findRun, listActiveRunsOfTenant, lockRun, lockThreadAndRun } from "../../storage/runs.ts";
import type { RunRow, ThreadRunKey } from "../../storage/schema.ts";
import { lockThreadId } from "../../storage/threads.ts";
import type { SettleContext } from "../settlement/settle.ts";
import { type CancelIntent, cancelLocked, type PendingCancel, publishCancels } from "./cancel.ts";

const BATCH = 200;

/** Cancels runs by request. A cancel is durable when the call returns: no later step of the run is committed. */
export class Cancellations {
  readonly #context: SettleContext;

  constructor(context: SettleContext) {
    this.#context = context;
  }

  /**
   * Cancels a run, and keeps (`interrupt`) or deletes (`rollback`) its results. With `wait`, returns once the run has stopped.
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
    await this.#write(async (tx) => cancelLocked(tx, await lockActive(tx, caller, run), intent));
    if (wait) await this.#context.events.ending(run, wait);
  }

  /**
   * Cancels either given runs of one thread (all or none), or the active runs that the caller may access, all or with one status.
   *
   * @throws ApiError run_not_found or run_ended for the first of `run_ids` that cannot be cancelled
   */
  async cancelMany(caller: Caller, selection: RunCancelMany, intent: CancelIntent): Promise<void> {
    if ("status" in selection) return this.#cancelByStatus(caller, selection.status, intent);
    const { tenant_id } = caller;
    const { thread_id, run_ids } = selection;
    await this.#write(async (tx) => {
      const runs = [];
      for (const run_id of new Set(run_ids)) runs.push(await lockActive(tx, caller, { tenant_id, thread_id, run_id }));
      const cancels = [];
      // Newest first: each rollback restores the thread as it was when that run was accepted.
      for (const run of runs.sort((a, b) => b.seq - a.seq)) cancels.push(...(await cancelLocked(tx, run, intent)));
      return cancels;
    });
  }

  /** Cancels a run whose client no longer waits for it, unless the run has ended. */
  async cancelIfActive(run: ThreadRunKey, reason: string | null = null): Promise<void> {
    const row = await findRun(this.#context.database.read, run);
    if (row && row.ended_at === null) await this.#cancelSelected([row], () => true, { action: "interrupt", reason });
  }

  /** Cancels each run in its own transaction. Excludes runs that are accepted during the call. */
  async #cancelByStatus(caller: Caller, status: "pending" | "running" | "all", intent: CancelIntent): Promise<void> {
    const { tenant_id } = caller;
    const access = filterOf(caller, "threads");
    const isSelected = (run: RunRow) => status === "all" || run.status === status;
    let before: number | undefined;
    for (;;) {
      const found = await listActiveRunsOfTenant(this.#context.database.read, {
        tenant_id,
        before,
        limit: BATCH,
        access,
      });
      await this.#cancelSelected(found, isSelected, intent);
      before = found.at(-1)?.seq;
      if (found.length < BATCH) return;
    }
  }

  async #cancelSelected(runs: RunRow[], isSelected: (run: RunRow) => boolean, intent: CancelIntent): Promise<void> {
    await Promise.all(
      runs.map((run) =>
        this.#write(async (tx) => {
          await lockThreadId(tx, run);
          const now = await lockRun(tx, run);
          return now && now.ended_at === null && isSelected(now) ? cancelLocked(tx, now, intent) : [];
        }),
      ),
    );
  }

  async #write(work: (tx: Tx) => Promise<PendingCancel[]>): Promise<void> {
    publishCancels(this.#context, await this.#context.database.write(work));
  }
}

async function lockActive(tx: Tx, caller: Caller, key: ThreadRunKey): Promise<RunRow> {
  const run = await requireAccessToRun(tx, caller, await lockThreadAndRun(tx, key));
  if (run.ended_at !== null) throw new ApiError("run_ended", { run_id: run.run_id, status: run.status });
  return run;
}
