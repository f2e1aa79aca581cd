import { type ExpressionBuilder, sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { Schema } from "../../platform/database/schema.ts";
import { isClaimant } from "./claimant.ts";
import { returning } from "./run-leases.ts";
import { PENDING, RUNNING } from "./runs.ts";
import type { RunRow } from "./schema.ts";

export interface Lost {
  lease_ms: number;
  /** A process that is gone has not renewed its leases for this long. */
  missed_ms: number;
  limit: number;
  /** Set where several roll-outs share the database: they are for the claimant to take care of. */
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
    .$if(rollout !== undefined, (query) => query.where((e) => isClaimant(e, rollout as number)))
    .limit(limit);

/** Running runs whose worker is gone: its lease has run out, or its process is gone and it has missed a heartbeat. */
export const findLostRuns = (tx: Tx, lost: Lost): Promise<Pick<RunRow, "run_id" | "worker_id">[]> =>
  tx.all(lostRuns(tx, lost).select(["run_id", "worker_id"]));

/**
 * The same, held until the transaction ends together with their threads. What somebody else holds is left out: a process that is
 * frozen in a transaction must keep nobody from the others.
 */
export const lockLostRuns = async (tx: Tx, lost: Lost): Promise<RunRow[]> => {
  const runs = await tx.all<RunRow>(tx.dialect.skipLocked(lostRuns(tx, lost).selectAll()));
  if (runs.length === 0) return [];
  const free = await tx.all<{ thread_id: string }>(
    tx.dialect.skipLocked(
      tx.k
        .selectFrom("threads")
        .select("thread_id")
        .where(
          "thread_id",
          "in",
          runs.map(({ thread_id }) => thread_id),
        ),
    ),
  );
  const threads = new Set(free.map(({ thread_id }) => thread_id));
  return runs.filter(({ thread_id }) => threads.has(thread_id));
};

/** Puts runs that {@link lockLostRuns} has found back into the queue; the attempt counts. */
export const returnLostRuns = (tx: Tx, run_ids: string[]): Promise<number> =>
  tx.run(returning(tx, { spent: 1, crashed: 0, delay_ms: 0 }).where("run_id", "in", run_ids));

/**
 * After the clock was set back, runs that have not ended would be due in the future, and new ones overtake them: they get times of now, in
 * their order and with their delays. For the one process that has the embedded database, at its start; while it runs its clock is steady.
 */
export async function bringBackToNow(tx: Tx): Promise<void> {
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

/** Ends all leases: for the one process that has the embedded database, at its start. Whatever runs was left behind by another. */
export const expireLeases = (tx: Tx): Promise<number> =>
  tx.run(tx.k.updateTable("runs").set({ lease_until: 0 }).where("status", "=", RUNNING));
