import { type RawBuilder, sql, type UpdateObject } from "kysely";
import type { MetadataFilter } from "../../platform/contract/caller.ts";
import { nowMs, type Schema, type Tx } from "../../platform/database/database.ts";
import { prepared } from "../../platform/database/prepared.ts";
import type { ThreadStatus } from "../contract/records.ts";
import type { ThreadRow } from "./schema.ts";
import { accessible } from "./search.ts";
import { requestTraceDeletions } from "./trace-deletions.ts";

export type ThreadTtl = Pick<ThreadRow, "ttl_strategy" | "ttl_ms">;
export type NewThread = Pick<ThreadRow, "thread_id" | "tenant_id" | "metadata" | "hidden"> &
  Partial<Pick<ThreadRow, keyof ThreadTtl | "status">>;

/** Whether a thread with the strategy `delete` has exceeded its time to live and is not busy. Reads do not return such a thread. */
const isExpired = sql<boolean>`(threads.ttl_strategy = 'delete' and threads.status <> 'busy'
  and threads.updated_at + threads.ttl_ms <= now_ms())`;
export const isReadable = sql<boolean>`(threads.ttl_ms is null or not ${isExpired})`;

/** Stores a new thread, which is idle by default. Returns undefined if the id is taken; the id of an expired thread is free. */
export async function insertThread(tx: Tx, thread: NewThread): Promise<ThreadRow | undefined> {
  const row = { ttl_strategy: null, ttl_ms: null, status: "idle" as const, ...thread };
  const inserted = await tx.first(insertQuery(tx, row));
  if (inserted) return inserted;
  const { thread_id } = thread;
  const expired = tx.k.selectFrom("threads").select("thread_id").where("thread_id", "=", thread_id).where(isExpired);
  // The sweeper may have deleted it meanwhile.
  if (await tx.first(tx.dialect.forUpdate(expired))) await deleteThread(tx, thread_id);
  return tx.first(insertQuery(tx, row));
}

const insertQuery = prepared<Required<NewThread>, ThreadRow>((k, p) =>
  k
    .insertInto("threads")
    .values({
      thread_id: p("thread_id"),
      tenant_id: p("tenant_id"),
      metadata: p("metadata"),
      hidden: p("hidden"),
      ttl_strategy: p("ttl_strategy"),
      ttl_ms: p("ttl_ms"),
      pruned: 0,
      status: p("status"),
      idle_status: "idle",
      config: "{}",
      values: null,
      interrupts: "{}",
      error: null,
      created_at: nowMs,
      updated_at: nowMs,
      state_updated_at: nowMs,
    })
    .onConflict((conflict) => conflict.column("thread_id").doNothing())
    .returningAll(),
);

export type ThreadKey = Pick<ThreadRow, "thread_id" | "tenant_id">;

type ThreadArguments = [tenant_id: string, thread_id: string, filter?: MetadataFilter | undefined];

/** Returns a thread of the tenant, including a hidden one, if it meets the filter. */
export const findThread = (
  tx: Tx,
  ...[tenant_id, thread_id, filter]: ThreadArguments
): Promise<ThreadRow | undefined> =>
  tx.first(
    filter
      ? filteredQuery(tx, { tenant_id, thread_id }, filter).where(isReadable)
      : findQuery(tx, { tenant_id, thread_id }),
  );

const filteredQuery = (tx: Tx, { tenant_id, thread_id }: ThreadKey, filter: MetadataFilter) =>
  tx.k
    .selectFrom("threads")
    .selectAll()
    .where("thread_id", "=", thread_id)
    .where("tenant_id", "=", tenant_id)
    .$call(accessible(filter));

const findQuery = prepared<ThreadKey, ThreadRow>((k, p) =>
  k
    .selectFrom("threads")
    .selectAll()
    .where("thread_id", "=", p("thread_id"))
    .where("tenant_id", "=", p("tenant_id"))
    .where(isReadable),
);

/** Like {@link findThread}, but also locks the row. Transactions that change a thread's runs or state take this lock first. */
export async function lockThread(
  tx: Tx,
  tenant_id: string,
  thread_id: string,
  filter?: MetadataFilter,
  { even_expired = false } = {},
): Promise<ThreadRow | undefined> {
  const key = { tenant_id, thread_id };
  const found = await tx.first(
    filter
      ? tx.dialect.forUpdate(filteredQuery(tx, key, filter).select(isReadable.as("is_readable")))
      : lockQuery(tx, key),
  );
  if (!found) return undefined;
  const { is_readable } = found;
  // Not copied: reading an encrypted value that cannot be decrypted throws an error.
  Reflect.deleteProperty(found, "is_readable");
  return even_expired || is_readable ? found : undefined;
}

const lockQuery = prepared<ThreadKey, ThreadRow & { is_readable: boolean }>((k, p, tx) =>
  tx.dialect.forUpdate(
    k
      .selectFrom("threads")
      .selectAll()
      .select(isReadable.as("is_readable"))
      .where("thread_id", "=", p("thread_id"))
      .where("tenant_id", "=", p("tenant_id")),
  ),
);

/** Locks the row of a thread whose record is not needed: its values may be large. */
export const lockThreadId = (tx: Tx, key: ThreadKey): Promise<void> => tx.enqueue(lockIdQuery(tx, key));

const lockIdQuery = prepared<ThreadKey, unknown>((k, p, tx) =>
  tx.dialect.forUpdate(
    k
      .selectFrom("threads")
      .select("thread_id")
      .where("thread_id", "=", p("thread_id"))
      .where("tenant_id", "=", p("tenant_id")),
  ),
);

/** Whether any workspace has a thread with this id. */
export const isThreadId = async (tx: Tx, thread_id: string): Promise<boolean> =>
  (await tx.first(tx.k.selectFrom("threads").select("thread_id").where("thread_id", "=", thread_id))) !== undefined;

/** Whether a thread has not expired; undefined if it does not exist. */
export async function isThreadReadable(tx: Tx, thread_id: string): Promise<boolean | undefined> {
  const found = await tx.first(readableQuery(tx, { thread_id }));
  return found && Boolean(found.is_readable);
}

const readableQuery = prepared<{ thread_id: string }, { is_readable: boolean }>((k, p) =>
  k.selectFrom("threads").select(isReadable.as("is_readable")).where("thread_id", "=", p("thread_id")),
);

/** Threads whose time to live is over and that have not been pruned since, longest expired first. Excludes threads with active runs. */
export const listExpiredThreads = (
  tx: Tx,
  limit: number,
): Promise<Pick<ThreadRow, "tenant_id" | "thread_id" | "ttl_strategy" | "updated_at">[]> => {
  const expires_at = sql<number>`(updated_at + ttl_ms)`;
  return tx.all(
    tx.k
      .selectFrom("threads")
      .select(["tenant_id", "thread_id", "ttl_strategy", "updated_at"])
      .where("ttl_ms", "is not", null)
      .where("pruned", "=", sql.lit(0))
      .where(expires_at, "<=", nowMs)
      .where("status", "!=", "busy")
      .orderBy(expires_at)
      .limit(limit),
  );
};

export const setPruned = (tx: Tx, thread_id: string): Promise<void> => updateThread(tx, thread_id, { pruned: 1 });

/** Changes a thread at the request of a client. */
export async function patchThread(
  tx: Tx,
  thread_id: string,
  changes: Pick<ThreadRow, "metadata"> & Partial<ThreadTtl>,
): Promise<ThreadRow> {
  const query = tx.k
    .updateTable("threads")
    .set({ ...changes, pruned: 0, updated_at: nowMs })
    .where("thread_id", "=", thread_id);
  return (await tx.first(query.returningAll())) as ThreadRow;
}

/** Sets a thread busy. Returns its new `updated_at`. */
export async function setThreadBusy(tx: Tx, thread_id: string, metadata: string): Promise<number> {
  const row = await tx.first(busyQuery(tx, { thread_id, metadata }));
  return (row as { updated_at: number }).updated_at;
}

const busyQuery = prepared<{ thread_id: string; metadata: string }, { updated_at: number }>((k, p) =>
  k
    .updateTable("threads")
    .set({ status: "busy", metadata: p("metadata"), updated_at: nowMs })
    .where("thread_id", "=", p("thread_id"))
    .returning("updated_at"),
);

/** `status` is the thread's status when no other run is active. */
export type ThreadOutcome = Pick<ThreadRow, "thread_id" | "status" | "values" | "interrupts" | "error">;

/** Stores the state after a run or an update; the thread stays busy while another run is active. */
export const settleThread = (tx: Tx, outcome: ThreadOutcome): Promise<void> => tx.enqueue(settleQuery(tx, outcome));

const settleQuery = prepared<ThreadOutcome, unknown>((k, p) =>
  k
    .updateTable("threads")
    .set({
      status: unlessBusy(sql.val(p("status"))),
      idle_status: p("status"),
      values: p("values"),
      interrupts: p("interrupts"),
      error: p("error"),
      pruned: 0,
      updated_at: nowMs,
      state_updated_at: nowMs,
    })
    .where("thread_id", "=", p("thread_id")),
);

const updateThread = (tx: Tx, thread_id: string, changes: UpdateObject<Schema, "threads">): Promise<void> =>
  tx.enqueue(tx.k.updateTable("threads").set(changes).where("thread_id", "=", thread_id));

/** Sets the status of a thread whose run has ended and, with the status `error`, its error, as JSON. The state stays unchanged. */
export const setThreadStatus = (tx: Tx, thread_id: string, status: ThreadStatus, error: string | null): Promise<void> =>
  updateThread(tx, thread_id, {
    status: unlessBusy(sql.val(status)),
    idle_status: status,
    ...(status === "error" && { error }),
    updated_at: nowMs,
  });

/** Recomputes the status of a thread after the cancellation or rollback of a run. */
export const recomputeStatus = (tx: Tx, thread_id: string): Promise<void> =>
  updateThread(tx, thread_id, { status: unlessBusy(sql.ref("idle_status")), updated_at: nowMs });

/** Restores the record of a thread after the rollback of a run. */
export const restoreThread = (
  tx: Tx,
  { thread_id, metadata, updated_at }: { thread_id: string; metadata: string; updated_at: number | undefined },
): Promise<void> => {
  const status = unlessBusy(sql.ref("idle_status"));
  // With a time to live, the rolled back run restarts it, as each run does: otherwise the thread could expire at once.
  const restored =
    updated_at === undefined ? nowMs : sql<number>`case when ttl_ms is null then ${updated_at} else ${nowMs} end`;
  return updateThread(tx, thread_id, { status, metadata, updated_at: restored });
};

/** Whether a run of the thread is pending or running. Does not read the runs, whose inputs can be large. */
export const hasActiveRun = async (tx: Tx, thread_id: string): Promise<boolean> =>
  (await tx.first(activeQuery(tx, { thread_id }))) !== undefined;

const activeQuery = prepared<{ thread_id: string }, { seq: number }>((k, p) =>
  k
    .selectFrom("runs")
    .select("seq")
    .where("thread_id", "=", p("thread_id"))
    .where("status", "in", ["pending", "running"])
    .limit(1),
);

const unlessBusy = (status: RawBuilder<unknown>) =>
  sql<ThreadStatus>`case when exists (select 1 from runs where runs.thread_id = threads.thread_id
    and runs.status in ('pending', 'running')) then 'busy' else ${status} end`;

/** Deletes a thread with its runs and its crons. */
export async function deleteThread(tx: Tx, thread_id: string): Promise<void> {
  const runs = tx.k.selectFrom("runs").select("run_id").where("thread_id", "=", thread_id);
  await requestTraceDeletions(tx, { column: "thread_id", id: thread_id });
  await tx.enqueue(tx.k.deleteFrom("run_events").where("run_id", "in", runs));
  await tx.enqueue(tx.k.deleteFrom("webhook_deliveries").where("run_id", "in", runs));
  await tx.enqueue(tx.k.deleteFrom("runs").where("thread_id", "=", thread_id));
  await tx.enqueue(tx.k.deleteFrom("crons").where("thread_id", "=", thread_id));
  await deleteThreadState(tx, thread_id);
}

/** Deletes a thread and its checkpoints; its runs and their events are kept. */
export async function deleteThreadState(tx: Tx, thread_id: string): Promise<void> {
  for (const query of deleteStateQueries) await tx.enqueue(query(tx, { thread_id }));
}

const deleteStateQueries = (["checkpoint_writes", "checkpoint_values", "checkpoints", "threads"] as const).map(
  (table) =>
    prepared<{ thread_id: string }, unknown>((k, p) => k.deleteFrom(table).where("thread_id", "=", p("thread_id"))),
);

/** Columns that a copy takes from its source. Copied checkpoints belong to no run. */
const COPIED_COLUMNS = {
  checkpoints:
    "checkpoint_ns checkpoint_id tenant_id parent_checkpoint_id epoch checkpoint metadata language created_at",
  checkpoint_values: "checkpoint_ns channel version tenant_id type value",
  checkpoint_writes: "checkpoint_ns checkpoint_id task_id task_path idx layer tenant_id channel type value",
};

/**
 * Copies a thread's state and checkpoints to a new thread, without those of an active run, which the thread's record does not have either:
 * the run may be rolled back. Also replaces the old id in the metadata of checkpoints: it is a UUID, so no
 * other text can match.
 */
export async function copyThread(
  tx: Tx,
  source: ThreadRow,
  { thread_id, metadata }: Pick<ThreadRow, "thread_id" | "metadata">,
): Promise<ThreadRow> {
  const now = { created_at: nowMs, updated_at: nowMs, state_updated_at: nowMs };
  const copy = { ...source, thread_id, metadata, status: source.idle_status, ...now };
  const row = await tx.first(tx.k.insertInto("threads").values(copy).returningAll());
  const copiedValue = (column: string) =>
    column === "metadata" ? sql`replace(metadata, ${source.thread_id}, ${thread_id})` : sql.ref(column);
  for (const [table, list] of Object.entries(COPIED_COLUMNS)) {
    const columns = list.split(" ");
    const names = sql.join(columns.map((column) => sql.ref(column)));
    const values = sql.join(columns.map(copiedValue));
    await tx.enqueue(
      sql`insert into ${sql.table(table)} (thread_id, ${names})
        select ${thread_id}, ${values} from ${sql.table(table)} where thread_id = ${source.thread_id} and (run_id is null or run_id not in
          (select run_id from runs where thread_id = ${source.thread_id} and ended_at is null))`.compile(tx.k),
    );
  }
  return row as ThreadRow;
}
