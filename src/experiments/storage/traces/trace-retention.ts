import { sql } from "kysely";
import type { Tx } from "../../../platform/database/database.ts";
import { byIds } from "../../../platform/database/insert-many.ts";

/** The projects whose traces expire. The traces of an experiment are its results and never expire. */
export const expiringSessions = (tx: Tx): Promise<{ experiment_no: number; tenant_id: string }[]> =>
  tx.all(
    tx.k
      .selectFrom("experiments")
      .select(["experiment_no", "tenant_id"])
      .where("trace_tier", "=", "shortlived")
      .where("dataset_no", "is", null)
      .orderBy("experiment_no"),
  );

/** Returns the traces to keep: one of their runs is shared, is in an annotation queue, or has feedback that extends the retention. */
export async function keptTraces(tx: Tx, tenant_id: string, trace_ids: string[]): Promise<Set<string>> {
  const rows = await byIds(trace_ids, (batch) =>
    tx.all(
      sql<{ trace_id: string }>`
        select distinct t.trace_id from trace_runs t
        where t.tenant_id = ${tenant_id} and t.trace_id in (${sql.join(batch)}) and (
          exists (select 1 from feedback f
            where f.tenant_id = t.tenant_id and f.run_id = t.run_id and f.extends_retention = 1)
          or exists (select 1 from run_shares s where s.tenant_id = t.tenant_id and s.run_id = t.run_id)
          or exists (select 1 from annotation_queue_items i where i.tenant_id = t.tenant_id and i.run_id = t.run_id))`.compile(
        tx.k,
      ),
    ),
  );
  return new Set(rows.map(({ trace_id }) => trace_id));
}

/** Precedes all trace IDs. */
export const FIRST_TRACE_ID = "00000000-0000-0000-0000-000000000000";

/** Returns traces of a session that have no root but a run before `before_us`: those with IDs after `after`, in ascending order. */
export async function rootlessTraces(
  tx: Tx,
  {
    experiment_no,
    before_us,
    after,
    limit,
  }: { experiment_no: number; before_us: number; after: string; limit: number },
): Promise<string[]> {
  const rows = await tx.all(
    sql<{ trace_id: string }>`
      select distinct t.trace_id from trace_runs t
      where t.experiment_no = ${experiment_no} and t.start_us < ${before_us} and t.is_root = 0
        and not exists (select 1 from trace_runs r where r.tenant_id = t.tenant_id and r.run_id = t.trace_id)
        and t.trace_id > ${after}
      order by t.trace_id limit ${limit}`.compile(tx.k),
  );
  return rows.map(({ trace_id }) => trace_id);
}

/**
 * Deletes traces with their payloads, attachments and feedback.
 *
 * @returns the sessions of the deleted runs
 */
export async function deleteTracesById(tx: Tx, tenant_id: string, trace_ids: string[]): Promise<number[]> {
  if (trace_ids.length === 0) return [];
  const where = sql`where tenant_id = ${tenant_id} and trace_id in (${sql.join(trace_ids)})`;
  const sessions = await tx.all(
    sql<{ experiment_no: number }>`select distinct experiment_no from trace_runs ${where}`.compile(tx.k),
  );
  for (const table of ["trace_attachments", "trace_payloads"] as const)
    await tx.run(
      sql`delete from ${sql.table(table)} where run_no in (select run_no from trace_runs ${where})`.compile(tx.k),
    );
  await tx.run(
    sql`delete from feedback where tenant_id = ${tenant_id}
      and run_id in (select run_id from trace_runs ${where})`.compile(tx.k),
  );
  await tx.run(sql`delete from trace_runs ${where}`.compile(tx.k));
  return sessions.map(({ experiment_no }) => experiment_no);
}

/** Returns the sessions of the traces that contain these runs: the retention of a trace locks that of its root or, without one, of a run. */
export async function sessionsOfTraces(tx: Tx, tenant_id: string, run_ids: string[]): Promise<number[]> {
  const rows = await byIds(run_ids, (batch) =>
    tx.all(
      tx.k
        .selectFrom("trace_runs")
        .select("experiment_no")
        .distinct()
        .where("tenant_id", "=", tenant_id)
        .where("trace_id", "in", (e) =>
          e.selectFrom("trace_runs").select("trace_id").where("tenant_id", "=", tenant_id).where("run_id", "in", batch),
        ),
    ),
  );
  return [...new Set(rows.map(({ experiment_no }) => experiment_no))];
}
