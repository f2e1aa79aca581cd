import { sql } from "kysely";
import type { RunStatus } from "../contract/records.ts";
import { nowMs, type Tx } from "./database.ts";
import { prepared } from "./prepared.ts";
import type { RunRow } from "./schema.ts";

export interface NewRun
  extends Pick<
    RunRow,
    | "run_id"
    | "tenant_id"
    | "thread_id"
    | "assistant_id"
    | "graph_id"
    | "metadata"
    | "kwargs"
    | "multitask_strategy"
    | "temporary"
  > {
  /** How long after its acceptance the run may start. */
  delay_ms: number;
}

/** Puts a run into its thread's queue. The caller holds the thread's lock. */
export const insertRun = async (tx: Tx, run: NewRun): Promise<RunRow> =>
  (await tx.first(insertQuery(tx, run))) as RunRow;

const insertQuery = prepared<NewRun, RunRow>((k, p) =>
  k
    .insertInto("runs")
    .values({
      run_id: p("run_id"),
      tenant_id: p("tenant_id"),
      thread_id: p("thread_id"),
      assistant_id: p("assistant_id"),
      graph_id: p("graph_id"),
      metadata: p("metadata"),
      kwargs: p("kwargs"),
      multitask_strategy: p("multitask_strategy"),
      temporary: p("temporary"),
      status: "pending",
      start_at: sql<number>`now_ms() + ${p("delay_ms")}`,
      run_after: sql<number>`now_ms() + ${p("delay_ms")}`,
      epoch: 0,
      attempt: 0,
      crashes: 0,
      created_at: nowMs,
      updated_at: nowMs,
    })
    .returningAll(),
);

// Partial indexes are used only when the status stands in the statement itself, not as a parameter.
export const PENDING = sql.lit<"pending">("pending");
export const RUNNING = sql.lit<"running">("running");

/** A run of the tenant, on this thread when one is given. */
export const findRun = (
  tx: Tx,
  key: { tenant_id: string; run_id: string; thread_id?: string },
): Promise<RunRow | undefined> => {
  const query = tx.k
    .selectFrom("runs")
    .selectAll()
    .where("run_id", "=", key.run_id)
    .where("tenant_id", "=", key.tenant_id);
  return tx.first(key.thread_id === undefined ? query : query.where("thread_id", "=", key.thread_id));
};

/** As {@link findRun}, and nobody else changes it until the transaction ends. */
export const lockRun = (
  tx: Tx,
  key: { tenant_id: string; run_id: string; thread_id: string },
): Promise<RunRow | undefined> =>
  tx.first(
    tx.dialect.forUpdate(
      tx.k
        .selectFrom("runs")
        .selectAll()
        .where("run_id", "=", key.run_id)
        .where("tenant_id", "=", key.tenant_id)
        .where("thread_id", "=", key.thread_id),
    ),
  );

/** Newest first. */
export const listRuns = (
  tx: Tx,
  filter: { tenant_id: string; thread_id: string; status?: RunStatus; limit: number; offset: number },
): Promise<RunRow[]> => {
  let query = tx.k
    .selectFrom("runs")
    .selectAll()
    .where("thread_id", "=", filter.thread_id)
    .where("tenant_id", "=", filter.tenant_id);
  if (filter.status) query = query.where("status", "=", filter.status);
  return tx.all(query.orderBy("seq", "desc").limit(filter.limit).offset(filter.offset));
};

/** The pending and running runs of a thread, in the order of acceptance. */
export const listActiveRuns = (tx: Tx, thread_id: string): Promise<RunRow[]> => tx.all(activeQuery(tx, { thread_id }));

const activeQuery = prepared<{ thread_id: string }, RunRow>((k, p) =>
  k
    .selectFrom("runs")
    .selectAll()
    .where("thread_id", "=", p("thread_id"))
    .where((e) => e.or([e("status", "=", PENDING), e("status", "=", RUNNING)]))
    .orderBy("seq"),
);

/** The pending and running runs of an assistant. */
export const listActiveRunsOfAssistant = (tx: Tx, assistant_id: string): Promise<RunRow[]> =>
  tx.all(
    tx.k
      .selectFrom("runs")
      .selectAll()
      .where("assistant_id", "=", assistant_id)
      .where((e) => e.or([e("status", "=", PENDING), e("status", "=", RUNNING)])),
  );

/** Ends a run that never started. 0 when it was not pending any more. */
export const interruptIfPending = (tx: Tx, run_id: string, reason: string | null): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("runs")
      .set({
        status: "interrupted",
        cancel_action: "interrupt",
        cancel_reason: reason,
        updated_at: nowMs,
        ended_at: nowMs,
      })
      .where("run_id", "=", run_id)
      .where("status", "=", PENDING),
  );

/** Writes down that a running run is to stop. From here on the fence lets none of its steps through. */
export const requestCancelIfRunning = (tx: Tx, run_id: string, reason: string | null): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("runs")
      .set({ cancel_action: "interrupt", cancel_reason: reason, updated_at: nowMs })
      .where("run_id", "=", run_id)
      .where("status", "=", RUNNING),
  );
