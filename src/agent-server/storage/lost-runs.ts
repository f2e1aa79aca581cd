import { type ExpressionBuilder, sql } from "kysely";
import { nowMs, type Schema, type Tx } from "../../platform/database/database.ts";
import { isActiveRollout, returnToQueue } from "./run-leases.ts";
import { PENDING, RUNNING } from "./runs.ts";
import type { RunRow } from "./schema.ts";

export interface Lost {
  lease_ms: number;
  /** Time without a renewal after which a disconnected process counts as dead. */
  missed_ms: number;
  limit: number;
  /** Set if several rollouts share the database: only the active one rescues runs. */
  rollout?: number | undefined;
}

const lostRuns = (tx: Tx, { lease_ms, missed_ms, limit, rollout }: Lost) =>
  tx.k
    .selectFrom("runs")
    .where("status", "=", RUNNING)
    .where((e) =>
      e.or([
        e("lease_until", "<", nowMs),
        e.and([
          e.not(tx.dialect.workerIsPresent()),
          e("lease_until", "<", sql<number>`now_ms() + ${lease_ms - missed_ms}`),
        ]),
      ]),
    )
    .$if(rollout !== undefined, (query) => query.where((e) => isActiveRollout(e, rollout as number)))
    .limit(limit);

/** Returns running runs that lost their worker: the lease has expired, or the process is disconnected and missed a heartbeat. */
export const findLostRuns = (tx: Tx, lost: Lost): Promise<Pick<RunRow, "run_id" | "worker_id">[]> =>
  tx.all(lostRuns(tx, lost).select(["run_id", "worker_id"]));

/**
 * Like {@link findLostRuns}, but also locks the runs and threads. Skips locked rows, so that a process that hangs
 * cannot block the rescue.
 */
export const lockLostRuns = async (tx: Tx, lost: Lost): Promise<RunRow[]> => {
  const runs = await tx.all<RunRow>(tx.dialect.skipLocked(lostRuns(tx, lost).selectAll()));
  if (runs.length === 0) return [];
  const thread_ids = runs.map(({ thread_id }) => thread_id);
  const free = await tx.all<{ thread_id: string }>(
    tx.dialect.skipLocked(tx.k.selectFrom("threads").select("thread_id").where("thread_id", "in", thread_ids)),
  );
  const locked = new Set(free.map(({ thread_id }) => thread_id));
  return runs.filter(({ thread_id }) => locked.has(thread_id));
};

/** Requeues the runs that {@link lockLostRuns} has locked, and counts their attempts. */
export const returnLostRuns = (tx: Tx, run_ids: string[]): Promise<number> =>
  tx.run(returnToQueue(tx, { spent: 1, crashed: 0, delay_ms: 0 }).where("run_id", "in", run_ids));

/**
 * Shifts the times of active runs after the clock was set back: otherwise they would be due in the future, and new runs would overtake
 * them. Their order and delays stay unchanged. Called at startup of the only process that uses an embedded database: while it runs, its
 * clock is monotonic.
 */
export async function shiftFutureRuns(tx: Tx): Promise<void> {
  const isAhead = (e: ExpressionBuilder<Schema, "runs">) =>
    e.and([e.or([e("status", "=", PENDING), e("status", "=", RUNNING)]), e("created_at", ">", nowMs)]);
  const row = await tx.first(
    tx.k.selectFrom("runs").where(isAhead).select(sql<number | null>`max(created_at) - now_ms()`.as("ms")),
  );
  const ms = row?.ms ?? 0;
  if (ms === 0) return;
  const earlier = (column: string) => sql<number>`${sql.ref(column)} - ${ms}`;
  await tx.run(
    tx.k
      .updateTable("runs")
      .set({ created_at: earlier("created_at"), start_at: earlier("start_at"), run_after: earlier("run_after") })
      .where(isAhead),
  );
}

/** Called at startup of the only process that uses an embedded database: all running runs have lost their worker. */
export const expireLeases = (tx: Tx): Promise<number> =>
  tx.run(tx.k.updateTable("runs").set({ lease_until: 0 }).where("status", "=", RUNNING));
