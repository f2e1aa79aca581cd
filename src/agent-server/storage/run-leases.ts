import { type Expression, type ExpressionBuilder, type SqlBool, sql } from "kysely";
import { nowMs, type Schema, type Tx } from "../../platform/database/database.ts";
import { prepared } from "../../platform/database/prepared.ts";
import { PENDING, RUNNING } from "./runs.ts";
import type { RunRow } from "./schema.ts";

/** Checks without a transaction whether a run may be claimable. If the result is false, no run is claimable. */
export const mayClaim = async (tx: Tx, rollout?: number): Promise<boolean> =>
  (await tx.first(rollout === undefined ? dueQuery(tx, {}) : dueToRolloutQuery(tx, { rollout }))) !== undefined;

const due = (k: Tx["k"]) =>
  k.selectFrom("runs").select("seq").where("status", "=", PENDING).where("run_after", "<=", nowMs).limit(1);

const dueQuery = prepared<object, { seq: number }>((k) => due(k));

const dueToRolloutQuery = prepared<{ rollout: number }, { seq: number }>((k, p) =>
  due(k).where((e) => isActiveRollout(e, p("rollout"))),
);

export interface Claim {
  worker_id: number;
  lease_ms: number;
  limit: number;
  /** Set if several rollouts share the database: runs are claimed only while this rollout is active. */
  rollout?: number | undefined;
  /** Limits the claim to runs of this workspace. */
  tenant_id?: string | undefined;
  /** Limits the claim to runs of these graphs, or to those of other graphs. */
  graphs?: { ids: readonly string[]; are: "only" | "excluded" } | undefined;
}

/**
 * Claims the first run of the queue of each thread without a running run, if it is due. The queue of a thread is ordered by start time, then
 * by acceptance. A run in retry back-off keeps its position and blocks later runs.
 */
export function claimRuns(tx: Tx, claim: Claim): Promise<RunRow[]> {
  const { rollout, tenant_id, graphs } = claim;
  const prepared = claimQueries[rollout === undefined ? "any" : "asRollout"][tenant_id ? "ofOne" : "ofAll"];
  if (!graphs) return tx.all(prepared(tx, claim));
  const given: Given = (name) => claim[name] as never;
  const query = claiming(tx.k, given, tx, tenant_id !== undefined, graphs);
  return tx.all(
    (rollout === undefined ? query : query.where((e) => isActiveRollout(e, rollout))).returningAll(),
  ) as Promise<RunRow[]>;
}

type Given = <K extends keyof Claim>(name: K) => NonNullable<Claim[K]>;

const claimQuery = (isRollout: boolean, isOfOne: boolean) =>
  prepared<Claim, RunRow>((k, p, tx) => {
    const given = p as Given;
    const claim = claiming(k, given, tx, isOfOne);
    return (isRollout ? claim.where((e) => isActiveRollout(e, given("rollout"))) : claim).returningAll();
  });

const claimQueries = {
  any: { ofAll: claimQuery(false, false), ofOne: claimQuery(false, true) },
  asRollout: { ofAll: claimQuery(true, false), ofOne: claimQuery(true, true) },
};

const claiming = (k: Tx["k"], p: Given, tx: Tx, isOfOne: boolean, graphs?: Claim["graphs"]) =>
  k
    .updateTable("runs")
    .set({
      status: "running",
      epoch: sql<number>`epoch + 1`,
      attempt: sql<number>`attempt + 1`,
      worker_id: p("worker_id"),
      lease_until: sql<number>`now_ms() + ${p("lease_ms")}`,
      started_at: sql<number>`coalesce(started_at, now_ms())`,
      updated_at: nowMs,
    })
    .where("seq", "in", (e) =>
      tx.dialect.skipLocked(
        e
          .selectFrom("runs as r")
          .select("r.seq")
          .where("r.status", "=", PENDING)
          .where("r.run_after", "<=", nowMs)
          .$if(isOfOne, (query) => query.where("r.tenant_id", "=", p("tenant_id")))
          .$if(graphs !== undefined, (query) =>
            query.where("r.graph_id", graphs?.are === "only" ? "in" : "not in", graphs?.ids ?? []),
          )
          .where((r) =>
            r.not(
              r.exists(
                r
                  .selectFrom("runs as x")
                  .select("x.seq")
                  .whereRef("x.thread_id", "=", "r.thread_id")
                  .where("x.status", "=", RUNNING),
              ),
            ),
          )
          .where((r) =>
            r.not(
              r.exists(
                r
                  .selectFrom("runs as y")
                  .select("y.seq")
                  .whereRef("y.thread_id", "=", "r.thread_id")
                  .where("y.status", "=", PENDING)
                  .where(sql<boolean>`(y.start_at, y.seq) < (r.start_at, r.seq)`),
              ),
            ),
          )
          .orderBy("r.start_at")
          .orderBy("r.seq")
          .limit(p("limit")),
      ),
    );

/**
 * Returns the first workspace after `after`, in circular order of ids, that has pending runs and is not `except`. Each result column
 * is one index lookup.
 */
export async function nextQueuedWorkspace(tx: Tx, range: WorkspaceRange): Promise<string | undefined> {
  const { next, beyond, first } = (await tx.first(queuedQuery(tx, range))) as QueuedRow;
  const candidates = [next, next === range.except ? beyond : null, first, beyond];
  return candidates.find((tenant_id) => tenant_id !== null && tenant_id !== range.except) ?? undefined;
}

interface WorkspaceRange {
  after: string;
  except: string;
}

type QueuedRow = Record<"next" | "beyond" | "first", string | null>;

const queuedQuery = prepared<WorkspaceRange, QueuedRow>((k, p) => {
  const queued = k
    .selectFrom("runs")
    .where("status", "=", PENDING)
    .select((e) => e.fn.min<string | null>("tenant_id").as("tenant_id"));
  return k.selectNoFrom([
    queued.where("tenant_id", ">", p("after")).as("next"),
    queued.where("tenant_id", ">", p("except")).as("beyond"),
    queued.as("first"),
  ]) as never;
});

/** Milliseconds until the next delayed run is due; undefined if there is none. */
export async function msUntilNextRun(tx: Tx): Promise<number | undefined> {
  const row = await tx.first(
    tx.k
      .selectFrom("runs")
      .select(sql<number | null>`min(run_after) - now_ms()`.as("ms"))
      .where("status", "=", PENDING)
      .where("run_after", ">", nowMs),
  );
  return row?.ms ?? undefined;
}

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

/** Returns a held run to its position in the queue. The higher epoch makes the fence refuse writes of its former worker. */
export const returnRunIfHeld = (tx: Tx, { run_id, epoch, ...cost }: Return): Promise<number> =>
  tx.run(returnToQueue(tx, cost).where("run_id", "=", run_id).where("epoch", "=", epoch).where("status", "=", RUNNING));

export const returnToQueue = (tx: Tx, { spent, crashed, delay_ms }: Omit<Return, keyof Lease>) =>
  tx.k.updateTable("runs").set({
    status: "pending",
    epoch: sql<number>`epoch + 1`,
    attempt: sql<number>`attempt - ${1 - spent}`,
    crashes: sql<number>`crashes + ${crashed}`,
    run_after: sql<number>`now_ms() + ${delay_ms}`,
    worker_id: null,
    lease_until: null,
    updated_at: nowMs,
  });

/**
 * True if this rollout is active, or if none is. The statements that claim runs contain the condition, so an
 * instance claims no run after the commit that activates another rollout.
 */
export const isActiveRollout = (e: ExpressionBuilder<Schema, "runs">, rollout: number): Expression<SqlBool> =>
  e.not(e.exists(e.selectFrom("active_rollout as a").select("a.id").where("a.rollout", "<>", rollout)));

/** Whether a rollout may execute runs: it is active, or none is. */
export const mayClaimAsRollout = async (tx: Tx, rollout: number): Promise<boolean> =>
  (await tx.first(tx.k.selectFrom("active_rollout").select("id").where("rollout", "<>", rollout))) === undefined;

/** Returns 0 and writes nothing if this rollout or a newer one is active. */
export const activateRolloutIfNewer = (tx: Tx, rollout: number): Promise<number> =>
  tx.run(
    tx.k
      .insertInto("active_rollout")
      .values({ id: 1, rollout, since: nowMs })
      .onConflict((conflict) =>
        conflict.column("id").doUpdateSet({ rollout, since: nowMs }).where("active_rollout.rollout", "<", rollout),
      ),
  );
