import { sql } from "kysely";
import type { MetadataFilter } from "../../platform/contract/caller.ts";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import { prepared } from "../../platform/database/prepared.ts";
import type { CancelAction, RunStatus } from "../contract/records.ts";
import type { RunKey, RunRow, ThreadRunKey, ThreadSnapshot } from "./schema.ts";
import { onAccessibleThread } from "./search.ts";
import { lockThreadId, type ThreadKey } from "./threads.ts";

export interface NewRun
  extends Pick<
    RunRow,
    | "run_id"
    | "tenant_id"
    | "user_id"
    | "thread_id"
    | "assistant_id"
    | "graph_id"
    | "metadata"
    | "kwargs"
    | "multitask_strategy"
    | "temporary"
    | "thread_snapshot"
    | "webhook"
    | "push_configs"
  > {
  /** Delay between the run's acceptance and its earliest start. */
  delay_ms: number;
}

/** Adds a run to its thread's queue. The caller holds the thread's lock. */
export const insertRun = async (tx: Tx, run: NewRun): Promise<RunRow> =>
  (await tx.first(insertQuery(tx, run))) as RunRow;

const acceptedAt = sql<number>`(select now from clock)`;

// Two readings of the clock may differ by 1 ms: a run without a delay would appear to have one.
const insertQuery = prepared<NewRun, RunRow>((k, p) =>
  k
    .with(
      (name) => name("clock").materialized(),
      (k) => k.selectNoFrom(nowMs.as("now")),
    )
    .insertInto("runs")
    .values({
      run_id: p("run_id"),
      tenant_id: p("tenant_id"),
      user_id: p("user_id"),
      thread_id: p("thread_id"),
      assistant_id: p("assistant_id"),
      graph_id: p("graph_id"),
      metadata: p("metadata"),
      kwargs: p("kwargs"),
      multitask_strategy: p("multitask_strategy"),
      temporary: p("temporary"),
      thread_snapshot: p("thread_snapshot"),
      webhook: p("webhook"),
      push_configs: p("push_configs"),
      status: "pending",
      start_at: sql<number>`${acceptedAt} + ${p("delay_ms")}`,
      run_after: sql<number>`${acceptedAt} + ${p("delay_ms")}`,
      epoch: 0,
      attempt: 0,
      crashes: 0,
      created_at: acceptedAt,
      updated_at: acceptedAt,
    })
    .returningAll(),
);

// Partial indexes are used only if the status is a literal in the statement, not a parameter.
export const PENDING = sql.lit<"pending">("pending");
export const RUNNING = sql.lit<"running">("running");

/** Whether the workspace, or one of its users, has at least `count` pending runs. Reads entries of the workspace in an index. */
export const hasPendingRuns = async (tx: Tx, pending: PendingRuns & { count: number }): Promise<boolean> => {
  const query = pending.user_id === undefined ? pendingQuery : pendingOfUserQuery;
  return (await tx.first(query(tx, { ...pending, offset: pending.count - 1 }))) !== undefined;
};

interface PendingRuns {
  tenant_id: string;
  user_id?: string;
}

type PendingOffset = PendingRuns & { offset: number };

const pendingRuns = (k: Tx["k"], p: <K extends keyof PendingOffset>(name: K) => NonNullable<PendingOffset[K]>) =>
  k
    .selectFrom("runs")
    .select("seq")
    .where("tenant_id", "=", p("tenant_id"))
    .where("status", "=", PENDING)
    .orderBy("start_at")
    .limit(1)
    .offset(p("offset"));

const pendingQuery = prepared<PendingOffset, { seq: number }>((k, p) => pendingRuns(k, p as never));

const pendingOfUserQuery = prepared<PendingOffset, { seq: number }>((k, p) =>
  pendingRuns(k, p as never).where("user_id", "=", p("user_id") as string),
);

function runQuery(tx: Tx, { run_id, tenant_id, thread_id }: RunKey & Partial<ThreadRunKey>) {
  const query = tx.k.selectFrom("runs").selectAll().where("run_id", "=", run_id).where("tenant_id", "=", tenant_id);
  return thread_id === undefined ? query : query.where("thread_id", "=", thread_id);
}

/** Finds a tenant's run. With a thread id, the run must belong to that thread. */
export const findRun = (tx: Tx, key: RunKey & Partial<ThreadRunKey>): Promise<RunRow | undefined> =>
  tx.first(runQuery(tx, key));

/** Like {@link findRun}, but also locks the row until the transaction ends. */
export const lockRun = (tx: Tx, key: ThreadRunKey): Promise<RunRow | undefined> =>
  tx.first(tx.dialect.forUpdate(runQuery(tx, key)));

/** Locks a run and its thread until the transaction ends, in the lock order of all transactions: thread, then run. */
export async function lockThreadAndRun(tx: Tx, key: ThreadRunKey): Promise<RunRow | undefined> {
  await lockThreadId(tx, key);
  return lockRun(tx, key);
}

export interface RunFilter {
  status?: RunStatus;
  limit: number;
  offset: number;
}

/** Returns the runs of a thread, newest first. */
export const listRuns = (
  tx: Tx,
  { tenant_id, thread_id }: ThreadKey,
  { status, limit, offset }: RunFilter,
): Promise<RunRow[]> => {
  let query = tx.k.selectFrom("runs").selectAll().where("thread_id", "=", thread_id).where("tenant_id", "=", tenant_id);
  if (status) query = query.where("status", "=", status);
  return tx.all(query.orderBy("seq", "desc").limit(limit).offset(offset));
};

/** Returns the pending and running runs of a thread, in the order of acceptance. */
export const listActiveRuns = (tx: Tx, thread_id: string): Promise<RunRow[]> => tx.all(activeQuery(tx, { thread_id }));

const activeQuery = prepared<{ thread_id: string }, RunRow>((k, p) =>
  k
    .selectFrom("runs")
    .selectAll()
    .where("thread_id", "=", p("thread_id"))
    .where((e) => e.or([e("status", "=", PENDING), e("status", "=", RUNNING)]))
    .orderBy("seq"),
);

/** Returns the output of the thread's last ended run whose output is long enough to be a delta base. */
export const findLastOutput = (tx: Tx, thread_id: string): Promise<Pick<RunRow, "run_id" | "output"> | undefined> =>
  tx.first(lastOutputQuery(tx, { thread_id }));

const lastOutputQuery = prepared<{ thread_id: string }, Pick<RunRow, "run_id" | "output">>((k, p) =>
  k
    .selectFrom("runs")
    .select(["run_id", "output"])
    .where("thread_id", "=", p("thread_id"))
    .where("ended_at", "is not", null)
    .where(sql<boolean>`length(output) > 1000`)
    .orderBy("seq", "desc")
    .limit(1),
);

const STARTED = [
  "run_id",
  "tenant_id",
  "thread_id",
  "assistant_id",
  "graph_id",
  "seq",
  "created_at",
  "started_at",
  "ended_at",
] as const;

/** A started run, for the stream of its thread. */
export type StartedRun = Pick<RunRow, (typeof STARTED)[number]> & { started_at: number };

const startedRuns = (tx: Tx, thread_id: string) =>
  tx.k
    .selectFrom("runs")
    .select(STARTED)
    .where("thread_id", "=", thread_id)
    .where("started_at", "is not", null)
    .$narrowType<{ started_at: number }>()
    .limit(1);

/** Returns the first run of the thread that started after a position in the thread's stream. */
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

/** Returns the thread's runs with the latest starts, the latest first. */
export const lastStartedRuns = (tx: Tx, thread_id: string, limit: number): Promise<StartedRun[]> =>
  tx.all(startedRuns(tx, thread_id).orderBy("started_at", "desc").orderBy("seq", "desc").limit(limit));

/** Returns the thread's started run with the highest `seq` up to the given one. */
export const startOf = (
  tx: Tx,
  thread_id: string,
  seq: number,
): Promise<Pick<StartedRun, "seq" | "started_at"> | undefined> =>
  tx.first(startedRuns(tx, thread_id).where("seq", "<=", seq).orderBy("seq", "desc"));

/** Whether a run of the thread that was accepted later has started, at `since` or later. */
export async function wasOvertaken(
  tx: Tx,
  { thread_id, seq }: Pick<RunRow, "thread_id" | "seq">,
  since = 0,
): Promise<boolean> {
  const query = tx.k.selectFrom("runs").select("seq").where("thread_id", "=", thread_id).where("seq", ">", seq);
  return (await tx.first(query.where("started_at", ">=", since).limit(1))) !== undefined;
}

/** Returns pending and running runs of a tenant with a `seq` below `before`, newest first. */
export const listActiveRunsOfTenant = (
  tx: Tx,
  {
    tenant_id,
    before,
    limit,
    access,
  }: { tenant_id: string; before: number | undefined; limit: number; access: MetadataFilter | undefined },
): Promise<RunRow[]> => {
  // The condition on ended_at selects the same runs as one on the status, and has an index by workspace.
  const active = tx.k
    .selectFrom("runs")
    .selectAll()
    .where("tenant_id", "=", tenant_id)
    .where("ended_at", "is", null)
    .$call(onAccessibleThread(access, "runs.thread_id"));
  const page = before === undefined ? active : active.where("seq", "<", before);
  return tx.all(page.orderBy("seq", "desc").limit(limit));
};

/** Returns the pending and running runs of an assistant. */
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

/** Ends a run that has never started. */
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
 * Stores the intent to stop an active run: the fence refuses its later steps. A pending run that has run before leaves the queue with an
 * expired lease, so that the rescue ends it like a running run.
 */
export const requestCancel = (
  tx: Tx,
  run_id: string,
  intent: { action: CancelAction; reason: string | null },
): Promise<void> =>
  tx.enqueue(
    tx.k
      .updateTable("runs")
      .set({
        status: "running",
        lease_until: sql<number>`case when status = 'pending' then 0 else lease_until end`,
        // An interrupt never replaces a rollback.
        cancel_action: sql<CancelAction>`case when cancel_action = 'rollback' then cancel_action else ${intent.action} end`,
        cancel_reason: intent.reason,
        updated_at: nowMs,
      })
      .where("run_id", "=", run_id)
      .where("ended_at", "is", null),
  );

export const setPushConfigs = (tx: Tx, run_id: string, push_configs: string | null): Promise<number> =>
  tx.run(tx.k.updateTable("runs").set({ push_configs }).where("run_id", "=", run_id));

export const setThreadSnapshot = (tx: Tx, run_id: string, snapshot: ThreadSnapshot): Promise<void> => {
  const thread_snapshot = JSON.stringify(snapshot);
  return tx.enqueue(tx.k.updateTable("runs").set({ thread_snapshot }).where("run_id", "=", run_id));
};

/** Makes a stateless run and its hidden thread an ordinary run and thread. */
export async function keepStateless(
  tx: Tx,
  { run_id, thread_id }: Pick<RunRow, "run_id" | "thread_id">,
): Promise<void> {
  await tx.run(tx.k.updateTable("threads").set({ hidden: 0 }).where("thread_id", "=", thread_id));
  await tx.run(tx.k.updateTable("runs").set({ temporary: 0 }).where("run_id", "=", run_id));
}
