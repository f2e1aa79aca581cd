import { sql } from "kysely";
import type { Tx } from "../../platform/database/database.ts";
import { prepared } from "../../platform/database/prepared.ts";
import { isRebuilt, versionsIn } from "./checkpoints/checkpoints.ts";
import { releaseOutput } from "./events.ts";
import type { ThreadRunKey } from "./schema.ts";
import { requestTraceDeletions } from "./trace-deletions.ts";

type RunOfThread = Omit<ThreadRunKey, "tenant_id">;

/** Deletes a run with its events and its checkpoints. What checkpoints of later runs reference or are rebuilt from is kept. */
export async function deleteRun(tx: Tx, run: RunOfThread): Promise<void> {
  await releaseOutput(tx, run);
  await detachNeeded(tx, run);
  await deleteWrites(tx, run);
  await tx.enqueue(
    tx.k.deleteFrom("checkpoints").where("thread_id", "=", run.thread_id).where("run_id", "=", run.run_id),
  );
  await deleteUnusedValues(tx, run);
  await tx.enqueue(tx.k.deleteFrom("webhook_deliveries").where("run_id", "=", run.run_id));
  await deleteRecord(tx, run);
}

/**
 * Rolls back the last run of its thread, which has not ended: deletes all rows with its ID, which restores the thread's state and history.
 * No other run can have used its checkpoints, and webhook deliveries are stored when a run ends.
 */
export async function deleteLastRun(tx: Tx, run: RunOfThread): Promise<void> {
  for (const query of deleteStateQueries) await tx.enqueue(query(tx, run));
  await deleteRecord(tx, run);
}

async function deleteRecord(tx: Tx, run: RunOfThread): Promise<void> {
  await requestTraceDeletions(tx, { column: "run_id", id: run.run_id });
  for (const query of deleteRecordQueries) await tx.enqueue(query(tx, run));
}

const deleteStateQueries = (["checkpoint_writes", "checkpoint_values", "checkpoints"] as const).map((table) =>
  prepared<RunOfThread, unknown>((k, p) =>
    k.deleteFrom(table).where("thread_id", "=", p("thread_id")).where("run_id", "=", p("run_id")),
  ),
);
const deleteRecordQueries = (["run_events", "runs"] as const).map((table) =>
  prepared<RunOfThread, unknown>((k, p) => k.deleteFrom(table).where("run_id", "=", p("run_id"))),
);

/** Assigns the checkpoints of a run that other checkpoints need, with its writes on them, to no run. */
async function detachNeeded(tx: Tx, { thread_id, run_id }: { thread_id: string; run_id: string }): Promise<void> {
  const rows = await tx.all(
    tx.k
      .selectFrom("checkpoints")
      .select(["checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "run_id", "metadata"])
      .where("thread_id", "=", thread_id),
  );
  const by_key = new Map(rows.map((row) => [keyOf(row.checkpoint_ns, row.checkpoint_id), row]));
  const seen = new Set<(typeof rows)[number]>();
  for (const row of rows.filter((each) => each.run_id !== run_id))
    for (let at: typeof row | undefined = row; at && isRebuilt(at) && !seen.has(at); ) {
      seen.add(at);
      at = by_key.get(keyOf(at.checkpoint_ns, at.parent_checkpoint_id ?? ""));
      if (at?.run_id !== run_id) continue;
      for (const table of ["checkpoints", "checkpoint_writes"] as const)
        await tx.run(
          tx.k
            .updateTable(table)
            .set({ run_id: null })
            .where("thread_id", "=", thread_id)
            .where("checkpoint_ns", "=", at.checkpoint_ns)
            .where("checkpoint_id", "=", at.checkpoint_id)
            .where("run_id", "=", run_id),
        );
    }
}

/** Deletes the writes of a run, and those of later runs on its checkpoints, such as the answer to its interrupt. */
async function deleteWrites(tx: Tx, { run_id, thread_id }: RunOfThread): Promise<void> {
  const position = sql<string>`checkpoint_ns || ' ' || checkpoint_id`;
  const own = tx.k
    .selectFrom("checkpoints")
    .select(position.as("at"))
    .where("thread_id", "=", thread_id)
    .where("run_id", "=", run_id);
  await tx.enqueue(
    tx.k
      .deleteFrom("checkpoint_writes")
      .where("thread_id", "=", thread_id)
      .where((e) => e.or([e("run_id", "=", run_id), e(position, "in", own)])),
  );
}

async function deleteUnusedValues(tx: Tx, { run_id, thread_id }: RunOfThread): Promise<void> {
  const rows = await tx.all(
    tx.k.selectFrom("checkpoints").select(["checkpoint_ns", "checkpoint"]).where("thread_id", "=", thread_id),
  );
  const used = new Set(rows.flatMap((row) => versionsIn(row).map(([, version]) => keyOf(row.checkpoint_ns, version))));
  const values = await tx.all(
    tx.k
      .selectFrom("checkpoint_values")
      .select(["checkpoint_ns", "version"])
      .distinct()
      .where("thread_id", "=", thread_id)
      .where("run_id", "=", run_id),
  );
  for (const { checkpoint_ns, version } of values) {
    if (used.has(keyOf(checkpoint_ns, version))) continue;
    await tx.enqueue(
      tx.k
        .deleteFrom("checkpoint_values")
        .where("thread_id", "=", thread_id)
        .where("checkpoint_ns", "=", checkpoint_ns)
        .where("version", "=", version),
    );
  }
}

const keyOf = (checkpoint_ns: string, part: string) => `${checkpoint_ns}\0${part}`;
