import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import { prepared } from "../../platform/database/prepared.ts";
import type { RunStatus } from "../contract/records.ts";
import { isClaimant } from "./claimant.ts";
import { PENDING, RUNNING } from "./runs.ts";
import type { RunRow } from "./schema.ts";

/** Whether any run may be claimable: cheap, and without a transaction. It may be wrong only in saying yes. */
export const mayClaim = async (tx: Tx, rollout?: number): Promise<boolean> =>
  (await tx.first(rollout === undefined ? dueQuery(tx, {}) : dueToRolloutQuery(tx, { rollout }))) !== undefined;

const due = (k: Tx["k"]) =>
  k.selectFrom("runs").select("seq").where("status", "=", PENDING).where("run_after", "<=", nowMs).limit(1);

const dueQuery = prepared<object, { seq: number }>((k) => due(k));

const dueToRolloutQuery = prepared<{ rollout: number }, { seq: number }>((k, p) =>
  due(k).where((e) => isClaimant(e, p("rollout"))),
);

export interface Claim {
  worker_id: number;
  lease_ms: number;
  limit: number;
  /** Set where several roll-outs share the database: nothing is taken unless this one is its claimant. */
  rollout?: number | undefined;
  /** Nothing is taken but runs of this workspace. */
  tenant_id?: string | undefined;
}

/**
 * Takes the next runs to execute: of each thread without a running run the first in its queue, if its time has
 * come. The queue of a thread is ordered by start time, then by acceptance; a delayed run stands behind those
 * that may start earlier, a run in retry back-off keeps its place and holds the others up.
 */
export const claimRuns = (tx: Tx, claim: Claim): Promise<RunRow[]> =>
  tx.all(
    claimQueries[claim.rollout === undefined ? "any" : "asRollout"][claim.tenant_id ? "ofOne" : "ofAll"](tx, claim),
  );

type Given = <K extends keyof Claim>(name: K) => NonNullable<Claim[K]>;

const claimQuery = (isRollout: boolean, isOfOne: boolean) =>
  prepared<Claim, RunRow>((k, p, tx) => {
    const given = p as Given;
    const claim = claiming(k, given, tx, isOfOne);
    return (isRollout ? claim.where((e) => isClaimant(e, given("rollout"))) : claim).returningAll();
  });

const claimQueries = {
  any: { ofAll: claimQuery(false, false), ofOne: claimQuery(false, true) },
  asRollout: { ofAll: claimQuery(true, false), ofOne: claimQuery(true, true) },
};

const claiming = (k: Tx["k"], p: Given, tx: Tx, isOfOne: boolean) =>
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
 * The next workspace after `after`, in the order of their ids and from the beginning again, that has runs which wait, other than
 * `except`. Each of the three answers is one look into the index.
 */
export async function nextWaitingWorkspace(tx: Tx, places: WaitingPlaces): Promise<string | undefined> {
  const { next, beyond, first } = (await tx.first(waitingQuery(tx, places))) as WaitingRow;
  const candidates = [next, next === places.except ? beyond : null, first, beyond];
  return candidates.find((tenant_id) => tenant_id !== null && tenant_id !== places.except) ?? undefined;
}

interface WaitingPlaces {
  after: string;
  except: string;
}

type WaitingRow = Record<"next" | "beyond" | "first", string | null>;

const waitingQuery = prepared<WaitingPlaces, WaitingRow>((k, p) => {
  const waiting = k
    .selectFrom("runs")
    .where("status", "=", PENDING)
    .select((e) => e.fn.min<string | null>("tenant_id").as("tenant_id"));
  return k.selectNoFrom([
    waiting.where("tenant_id", ">", p("after")).as("next"),
    waiting.where("tenant_id", ">", p("except")).as("beyond"),
    waiting.as("first"),
  ]) as never;
});

/** Milliseconds until the next pending run may start; undefined when none waits for its time. */
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

/** What a worker holds: its claim of a run. */
export interface Lease {
  run_id: string;
  epoch: number;
}

/**
 * The fence. True while the run is running at this epoch and has not been told to stop; the row is held until
 * the transaction ends, so that nobody takes the run away between the check and the write.
 */
export const holdsLease = async (tx: Tx, lease: Lease): Promise<boolean> =>
  (await tx.first(fenceQuery(tx, lease))) !== undefined;

const fenceQuery = prepared<Lease, { seq: number }>((k, p, tx) =>
  tx.dialect.forShare(
    k
      .selectFrom("runs")
      .select("seq")
      .where("run_id", "=", p("run_id"))
      .where("epoch", "=", p("epoch"))
      .where("status", "=", RUNNING)
      .where("cancel_action", "is", null),
  ),
);

export interface Held {
  worker_id: number;
  run_ids: string[];
}

/** How a run stands that a worker executes. */
export type HeldRun = Pick<RunRow, "run_id" | "epoch" | "cancel_action">;

/**
 * Renews the leases of the runs that a worker executes, and says how each of them stands. One that it holds and does not
 * execute, because it could not end it, is left to the rescue.
 *
 * @param waits for rows that are locked, also by a long write of the run itself; otherwise they are left out
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

/** How these runs stand, whoever has locked them. */
export const findHeld = (tx: Tx, held: Held): Promise<HeldRun[]> =>
  tx.all(heldBy(tx, held).select(["run_id", "epoch", "cancel_action"]));

const heldBy = (tx: Tx, { worker_id, run_ids }: Held) =>
  tx.k
    .selectFrom("runs")
    .where("status", "=", RUNNING)
    .where("worker_id", "=", worker_id)
    .where("run_id", "in", run_ids);

export interface RunOutcome extends Lease {
  status: RunStatus;
  output: string | null;
}

/** A run if it is still held at this epoch, held also in the database until the transaction ends. */
export const lockRunIfHeld = (tx: Tx, lease: Lease): Promise<RunRow | undefined> => tx.first(heldQuery(tx, lease));

const heldQuery = prepared<Lease, RunRow>((k, p, tx) =>
  tx.dialect.forUpdate(
    k
      .selectFrom("runs")
      .selectAll()
      .where("run_id", "=", p("run_id"))
      .where("epoch", "=", p("epoch"))
      .where("status", "=", RUNNING),
  ),
);

/** Ends a run if it is still held at this epoch and not to stop. False when it is not: then nothing was written. */
export const endRunIfHeld = async (tx: Tx, outcome: RunOutcome): Promise<boolean> =>
  (await tx.run(endQuery(tx, outcome))) === 1;

const endQuery = prepared<RunOutcome, unknown>((k, p) =>
  k
    .updateTable("runs")
    .set({ status: p("status"), output: p("output"), lease_until: null, updated_at: nowMs, ended_at: nowMs })
    .where("run_id", "=", p("run_id"))
    .where("epoch", "=", p("epoch"))
    .where("status", "=", RUNNING)
    .where("cancel_action", "is", null),
);

/** Ends a run that {@link lockRunIfHeld} has found, also one that is to stop. */
export const endHeldRun = (tx: Tx, { run_id, epoch, status, output }: RunOutcome): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("runs")
      .set({ status, output, lease_until: null, updated_at: nowMs, ended_at: nowMs })
      .where("run_id", "=", run_id)
      .where("epoch", "=", epoch),
  );

export interface Return extends Lease {
  /** 1 when the attempt counts: the run was lost. 0 when it was handed back in good order. */
  spent: 0 | 1;
  /** 1 when the graph host died with the run in it. */
  crashed: 0 | 1;
  delay_ms: number;
}

/** Puts a held run back into the queue, at its old place. Its epoch goes up at once, so that whoever still works on it writes nothing more. */
export const returnRunIfHeld = (tx: Tx, { run_id, epoch, ...cost }: Return): Promise<number> =>
  tx.run(returning(tx, cost).where("run_id", "=", run_id).where("epoch", "=", epoch).where("status", "=", RUNNING));

/** What a run becomes that goes back into the queue. */
export const returning = (tx: Tx, { spent, crashed, delay_ms }: Omit<Return, keyof Lease>) =>
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
