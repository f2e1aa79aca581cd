import { type ExpressionBuilder, sql } from "kysely";
import { nowMs, type Schema, type Tx } from "../../platform/database/database.ts";
import { prepared } from "../../platform/database/prepared.ts";
import type { RunStatus } from "../contract/records.ts";
import { isActiveRollout } from "./claims/claims.ts";
import { PENDING, RUNNING } from "./runs.ts";
import type { RunRow } from "./schema.ts";

export type Lease = Pick<RunRow, "run_id" | "epoch">;

/**
 * The fence: whether a run is running at this epoch and not cancelled. Locks the row until the transaction ends, so that no other worker
 * can claim the run between the check and the write.
 */
export const holdsLease = async (tx: Tx, lease: Lease): Promise<boolean> =>
  (await tx.first(fenceQuery(tx, lease))) !== undefined;

const fenceQuery = prepared<Lease, { seq: number }>((k, p, tx) =>
  tx.dialect.forShare(heldRun(k, p).select("seq").where("cancel_action", "is", null)),
);

const heldRun = (k: Tx["k"], p: <K extends keyof Lease>(name: K) => Lease[K]) =>
  k.selectFrom("runs").where("run_id", "=", p("run_id")).where("epoch", "=", p("epoch")).where("status", "=", RUNNING);

export interface Held {
  worker_id: number;
  run_ids: string[];
}

export type HeldRun = Pick<RunRow, "run_id" | "epoch" | "cancel_action">;

/**
 * Renews the leases of the runs that a worker executes. The leases of runs that the worker holds but could not end are not renewed.
 *
 * @param waits whether to wait for locked rows, such as those locked by a long write of the run itself, or to skip them
 */
export const renewLeases = (
  tx: Tx,
  { worker_id, lease_ms, run_ids, waits }: Held & { lease_ms: number; waits: boolean },
): Promise<HeldRun[]> => {
  const held = heldBy(tx, { worker_id, run_ids }).select("seq");
  return tx.all(
    tx.k
      .updateTable("runs")
      .set({ lease_until: sql<number>`now_ms() + ${lease_ms}` })
      .where("seq", "in", waits ? held : tx.dialect.skipLocked(held))
      .returning(["run_id", "epoch", "cancel_action"]),
  );
};

/** Returns the runs that the worker holds, including locked rows. */
export const findHeld = (tx: Tx, held: Held): Promise<HeldRun[]> =>
  tx.all(heldBy(tx, held).select(["run_id", "epoch", "cancel_action"]));

const heldBy = (tx: Tx, { worker_id, run_ids }: Held) =>
  tx.k
    .selectFrom("runs")
    .where("status", "=", RUNNING)
    .where("worker_id", "=", worker_id)
    .where("run_id", "in", run_ids);

export type RunOutcome = Pick<RunRow, "run_id" | "epoch" | "status" | "output">;

/** Returns the run if it is held at this epoch; locks the row until the transaction ends. */
export const lockRunIfHeld = (tx: Tx, lease: Lease): Promise<RunRow | undefined> => tx.first(heldQuery(tx, lease));

const heldQuery = prepared<Lease, RunRow>((k, p, tx) => tx.dialect.forUpdate(heldRun(k, p).selectAll()));

/**
 * Ends a run if it is held at this epoch and no cancel was requested, and returns the fields that may have changed since the claim.
 * Otherwise writes nothing and returns undefined.
 */
export const endRunIfHeld = (tx: Tx, outcome: RunOutcome): Promise<Pick<RunRow, "push_configs"> | undefined> =>
  tx.first(endQuery(tx, outcome));

const endQuery = prepared<RunOutcome, Pick<RunRow, "push_configs">>((k, p) =>
  k
    .updateTable("runs")
    .set({ status: p("status"), output: p("output"), lease_until: null, updated_at: nowMs, ended_at: nowMs })
    .where("run_id", "=", p("run_id"))
    .where("epoch", "=", p("epoch"))
    .where("status", "=", RUNNING)
    .where("cancel_action", "is", null)
    .returning("push_configs"),
);

/** Ends a run that {@link lockRunIfHeld} has locked, even if a cancel was requested. */
export const endHeldRun = (tx: Tx, { run_id, epoch, status, output }: RunOutcome): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("runs")
      .set({ status, output, lease_until: null, updated_at: nowMs, ended_at: nowMs })
      .where("run_id", "=", run_id)
      .where("epoch", "=", epoch),
  );

export interface Return extends Lease {
  /** 1 if the attempt counts. 0 if it does not, for example because the run was handed back. */
  spent: 0 | 1;
  /** 1 if the graph host died while it executed the run. */
  crashed: 0 | 1;
  delay_ms: number;
}

/**
 * Returns a held run to its position in the queue. The higher epoch makes the fence refuse writes of its former worker. If a cancel was
 * requested, the run stays `running` without a lease instead, so that the rescue ends it.
 */
export const returnRunIfHeld = (tx: Tx, { run_id, epoch, ...cost }: Return): Promise<number> =>
  tx.run(returnToQueue(tx, cost).where("run_id", "=", run_id).where("epoch", "=", epoch).where("status", "=", RUNNING));

export const returnToQueue = (tx: Tx, { spent, crashed, delay_ms }: Omit<Return, keyof Lease>) =>
  tx.k.updateTable("runs").set({
    status: sql<RunStatus>`case when cancel_action is null then 'pending' else status end`,
    epoch: sql<number>`epoch + 1`,
    attempt: sql<number>`attempt - ${1 - spent}`,
    crashes: sql<number>`crashes + ${crashed}`,
    run_after: sql<number>`now_ms() + ${delay_ms}`,
    worker_id: null,
    lease_until: sql<number | null>`case when cancel_action is null then null else 0 end`,
    updated_at: nowMs,
  });

export interface Lost {
  lease_ms: number;
  /** Time without a renewal after which a disconnected process counts as dead. */
  missed_ms: number;
  limit: number;
  /** Runs that this process is ending. */
  except?: readonly string[];
  /** Set if several rollouts share the database: only the active one rescues runs. */
  rollout?: number | undefined;
}

const lostRuns = (tx: Tx, { lease_ms, missed_ms, limit, except = [], rollout }: Lost) =>
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
    .$if(except.length > 0, (query) => query.where("run_id", "not in", except))
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
