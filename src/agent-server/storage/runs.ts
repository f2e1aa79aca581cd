import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import { prepared } from "../../platform/database/prepared.ts";
import type { CancelAction, RunStatus } from "../contract/records.ts";
import type { RunRow, ThreadBefore } from "./schema.ts";

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
    | "thread_before"
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
      thread_before: p("thread_before"),
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

/** What the last run of a thread to end has left, if that is long enough to be worth referring to. */
export const findLastOutput = (
  tx: Tx,
  thread_id: string,
): Promise<{ run_id: string; output: string | null } | undefined> => tx.first(lastOutputQuery(tx, { thread_id }));

const lastOutputQuery = prepared<{ thread_id: string }, { run_id: string; output: string | null }>((k, p) =>
  k
    .selectFrom("runs")
    .select(["run_id", "output"])
    .where("thread_id", "=", p("thread_id"))
    .where("ended_at", "is not", null)
    .where(sql<boolean>`length(output) > 1000`)
    .orderBy("seq", "desc")
    .limit(1),
);

/** A run that has started, as the stream of its thread needs it. */
export type StartedRun = Pick<
  RunRow,
  "run_id" | "tenant_id" | "thread_id" | "assistant_id" | "graph_id" | "seq" | "ended_at"
> & { started_at: number };

const STARTED = [
  "run_id",
  "tenant_id",
  "thread_id",
  "assistant_id",
  "graph_id",
  "seq",
  "started_at",
  "ended_at",
] as const;

const startedRuns = (tx: Tx, thread_id: string) =>
  tx.k
    .selectFrom("runs")
    .select(STARTED)
    .where("thread_id", "=", thread_id)
    .where("started_at", "is not", null)
    .$narrowType<{ started_at: number }>()
    .limit(1);

/** The first run of the thread that started behind a place in its stream. */
export const nextStartedRun = (
  tx: Tx,
  thread_id: string,
  after: { started_at: number; seq: number },
): Promise<StartedRun | undefined> =>
  tx.first(
    startedRuns(tx, thread_id)
      .where(sql<boolean>`(started_at, seq) > (${after.started_at}, ${after.seq})`)
      .orderBy("started_at")
      .orderBy("seq"),
  );

/** The run of the thread that started last. */
export const lastStartedRun = (tx: Tx, thread_id: string): Promise<StartedRun | undefined> =>
  tx.first(startedRuns(tx, thread_id).orderBy("started_at", "desc").orderBy("seq", "desc"));

/** Whether a run of the thread that was accepted later has started already. */
export async function wasOvertaken(tx: Tx, { thread_id, seq }: Pick<RunRow, "thread_id" | "seq">): Promise<boolean> {
  const query = tx.k.selectFrom("runs").select("seq").where("thread_id", "=", thread_id).where("seq", ">", seq);
  return (await tx.first(query.where("started_at", "is not", null).limit(1))) !== undefined;
}

/** Pending and running runs of a tenant, the newest first, from before a `seq`. */
export const listActiveRunsOfTenant = (
  tx: Tx,
  { tenant_id, before, limit }: { tenant_id: string; before: number | undefined; limit: number },
): Promise<RunRow[]> => {
  // Pending and running ones are those that have not ended; so an index by workspace and end finds them.
  const active = tx.k.selectFrom("runs").selectAll().where("tenant_id", "=", tenant_id).where("ended_at", "is", null);
  const page = before === undefined ? active : active.where("seq", "<", before);
  return tx.all(page.orderBy("seq", "desc").limit(limit));
};

/** The pending and running runs of an assistant. */
export const listActiveRunsOfAssistant = (
  tx: Tx,
  { tenant_id, assistant_id }: Pick<RunRow, "tenant_id" | "assistant_id">,
): Promise<RunRow[]> =>
  tx.all(
    tx.k
      .selectFrom("runs")
      .selectAll()
      .where("tenant_id", "=", tenant_id)
      .where("assistant_id", "=", assistant_id)
      .where("ended_at", "is", null),
  );

/** Ends a run that never started. */
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

/**
 * Writes down that an active run is to stop. From here on the fence lets none of its steps through. A pending one, which
 * has run before, is taken out of the queue as if its worker had died, so that it is ended like a running one.
 */
export const requestCancel = (
  tx: Tx,
  run_id: string,
  intent: { action: CancelAction; reason: string | null },
): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("runs")
      .set({
        status: "running",
        lease_until: sql<number>`case when status = 'pending' then 0 else lease_until end`,
        // Undoing goes further than stopping, whatever order they are asked for in.
        cancel_action: sql<CancelAction>`case when cancel_action = 'rollback' then cancel_action else ${intent.action} end`,
        cancel_reason: intent.reason,
        updated_at: nowMs,
      })
      .where("run_id", "=", run_id)
      .where("ended_at", "is", null),
  );

/** Notes what a run found in its thread's record. */
export const setThreadBefore = (tx: Tx, run_id: string, before: ThreadBefore): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("runs")
      .set({ thread_before: JSON.stringify(before) })
      .where("run_id", "=", run_id),
  );
