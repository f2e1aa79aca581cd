import { type SqlBool, sql } from "kysely";
import type { MetadataFilter } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import type { RunKey, RunRow } from "./schema.ts";
import { onAccessibleThread } from "./search.ts";
import { isReadable } from "./threads.ts";

/** A run as a task of the A2A protocol. */
export type TaskState = "submitted" | "working" | "completed" | "failed" | "canceled" | "input-required";

/** A paused run waits for input until a later run of its thread starts, which continues it or starts the graph again. */
const STATE = sql<TaskState>`case
  when runs.status = 'running' then 'working'
  when runs.status = 'pending' then case when runs.started_at is null then 'submitted' else 'working' end
  when runs.status = 'success' then 'completed'
  when runs.status in ('error', 'timeout') then 'failed'
  when runs.cancel_action is not null then 'canceled'
  when exists (select 1 from runs later where later.thread_id = runs.thread_id and later.seq > runs.seq
    and later.started_at is not null) then 'completed'
  else 'input-required' end`;

const CHANGED_AT = sql<number>`coalesce(runs.ended_at, runs.started_at, runs.created_at)`;

const COLUMNS = ["run_id", "tenant_id", "thread_id", "seq", "metadata", "cancel_reason", "push_configs"] as const;

/** A run without its input and output, which may be large. */
export interface TaskRow extends Pick<RunRow, (typeof COLUMNS)[number]> {
  state: TaskState;
  /** Time at which the run got its state. */
  changed_at: number;
}

export type TaskPosition = Pick<TaskRow, "changed_at" | "seq">;

export interface TaskFilter {
  tenant_id: string;
  access?: MetadataFilter | undefined;
  assistant_id?: string;
  run_id?: string;
  thread_id?: string | undefined;
  state?: TaskState | undefined;
  changed_from?: number | undefined;
}

/** Runs whose thread was deleted, has expired or is hidden are not tasks. */
function tasksOf(tx: Tx, filter: TaskFilter) {
  const { tenant_id, access, assistant_id, run_id, thread_id, state, changed_from } = filter;
  let query = tx.k
    .selectFrom("runs")
    .innerJoin("threads", "threads.thread_id", "runs.thread_id")
    .where("runs.tenant_id", "=", tenant_id)
    .where("threads.hidden", "=", 0)
    .where(isReadable)
    .$call(onAccessibleThread(access, "runs.thread_id"));
  if (assistant_id !== undefined) query = query.where("runs.assistant_id", "=", assistant_id);
  if (run_id !== undefined) query = query.where("runs.run_id", "=", run_id);
  if (thread_id !== undefined) query = query.where("runs.thread_id", "=", thread_id);
  if (state !== undefined) query = query.where(sql<SqlBool>`${STATE} = ${state}`);
  if (changed_from !== undefined) query = query.where(CHANGED_AT, ">=", changed_from);
  return query;
}

const selected = (tx: Tx, filter: TaskFilter) =>
  tasksOf(tx, filter)
    .select(COLUMNS.map((column) => `runs.${column}` as const))
    .select([STATE.as("state"), CHANGED_AT.as("changed_at")]);

/** Returns the task of a new run. */
export const submittedTask = ({ created_at, ...run }: RunRow): TaskRow => {
  const { run_id, tenant_id, thread_id, seq, metadata, cancel_reason, push_configs } = run;
  const fields = { run_id, tenant_id, thread_id, seq, metadata, cancel_reason, push_configs };
  return { ...fields, state: "submitted", changed_at: created_at };
};

export const findTask = (tx: Tx, filter: TaskFilter & RunKey): Promise<TaskRow | undefined> =>
  tx.first(selected(tx, filter));

/** Returns the tasks after a position, the last changed first. */
export function listTasks(
  tx: Tx,
  filter: TaskFilter,
  { after, limit }: { after: TaskPosition | undefined; limit: number },
): Promise<TaskRow[]> {
  let query = selected(tx, filter);
  if (after) query = query.where(sql<SqlBool>`(${CHANGED_AT}, runs.seq) < (${after.changed_at}, ${after.seq})`);
  return tx.all(query.orderBy(CHANGED_AT, "desc").orderBy("runs.seq", "desc").limit(limit));
}

export async function countTasks(tx: Tx, filter: TaskFilter): Promise<number> {
  const row = await tx.first(tasksOf(tx, filter).select(sql<number>`count(*)`.as("count")));
  return Number(row?.count);
}

export async function findOutput(tx: Tx, run_id: string): Promise<string | null> {
  const row = await tx.first(tx.k.selectFrom("runs").select("output").where("run_id", "=", run_id));
  return row?.output ?? null;
}
