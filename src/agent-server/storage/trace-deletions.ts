import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import { prepared } from "../../platform/database/prepared.ts";
import type { TraceDeletionRow } from "./schema.ts";

/** Requests the deletion of the traces of a run, or of the runs of a thread, in the transaction that deletes the runs. */
export async function requestTraceDeletions(
  tx: Tx,
  { column, id }: { column: "run_id" | "thread_id"; id: string },
): Promise<void> {
  await tx.enqueue(insertQueries[column](tx, { id }));
}

/** Runs that have not started have no trace. */
const insertQuery = (column: "run_id" | "thread_id") =>
  prepared<{ id: string }, unknown>((k, p) =>
    k
      .insertInto("trace_deletions")
      .columns(["run_id", "tenant_id", "created_at", "done"])
      .expression((e) =>
        e
          .selectFrom("runs")
          .select(["run_id", "tenant_id", nowMs.as("created_at"), sql<number>`0`.as("done")])
          .where(column, "=", p("id"))
          .where("epoch", ">", 0),
      )
      .onConflict((conflict) => conflict.doNothing()),
  );
const insertQueries = { run_id: insertQuery("run_id"), thread_id: insertQuery("thread_id") };

/** Returns the requests to execute, oldest first: those not done yet, and those older than `repeat_after_ms`, which are repeated. */
export const listTraceDeletions = (
  tx: Tx,
  { repeat_after_ms, limit }: { repeat_after_ms: number; limit: number },
): Promise<TraceDeletionRow[]> =>
  tx.all(
    tx.k
      .selectFrom("trace_deletions")
      .selectAll()
      .where((e) => e.or([e("done", "=", 0), e("created_at", "<", sql<number>`${nowMs} - ${repeat_after_ms}`)]))
      .orderBy("created_at")
      .limit(limit),
  );

export async function markTraceDeletions(tx: Tx, run_ids: string[]): Promise<void> {
  if (run_ids.length > 0)
    await tx.run(tx.k.updateTable("trace_deletions").set({ done: 1 }).where("run_id", "in", run_ids));
}

export async function deleteTraceDeletions(tx: Tx, run_ids: string[]): Promise<void> {
  if (run_ids.length > 0) await tx.run(tx.k.deleteFrom("trace_deletions").where("run_id", "in", run_ids));
}
