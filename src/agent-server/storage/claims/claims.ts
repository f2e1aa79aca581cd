import { type Expression, type ExpressionBuilder, type SqlBool, sql } from "kysely";
import { nowMs, type Schema, type Tx } from "../../../platform/database/database.ts";
import { prepared } from "../../../platform/database/prepared.ts";
import { PENDING, RUNNING } from "../runs.ts";
import type { RunRow } from "../schema.ts";

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
  /** Excludes the runs of these users of the workspace. */
  except_users?: readonly string[] | undefined;
  /** Limits the claim to runs of these graphs, or to those of other graphs. */
  graphs?: { ids: readonly string[]; are: "only" | "excluded" } | undefined;
}

/**
 * Claims the first run of the queue of each thread without a running run, if it is due. The queue of a thread is ordered by start time, then
 * by acceptance. A run in retry back-off keeps its position and blocks later runs.
 */
export function claimRuns(tx: Tx, claim: Claim): Promise<RunRow[]> {
  const { rollout, tenant_id, graphs, except_users = [] } = claim;
  const prepared = claimQueries[rollout === undefined ? "any" : "asRollout"][tenant_id ? "ofOne" : "ofAll"];
  if (!graphs && except_users.length === 0) return tx.all(prepared(tx, claim));
  const given: Given = (name) => claim[name] as never;
  const query = claiming(tx.k, given, tx, tenant_id !== undefined, { graphs, except_users });
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

const claiming = (
  k: Tx["k"],
  p: Given,
  tx: Tx,
  isOfOne: boolean,
  { graphs, except_users = [] }: Pick<Claim, "graphs" | "except_users"> = {},
) =>
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
          .$if(except_users.length > 0, (query) => query.where("r.user_id", "not in", except_users))
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
