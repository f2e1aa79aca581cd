import { nowMs, type Tx } from "../../../platform/database/database.ts";
import { prepared } from "../../../platform/database/prepared.ts";
import type { NewCheckpointData, WriteData } from "../../graph-hosts/checkpoint-requests.ts";
import type { CheckpointRow, CheckpointValueRow, CheckpointWriteRow, RunRow } from "../schema.ts";

/** The writer of a checkpoint: a run, or a state update (`run_id` null, `seq` 0). */
export type Author = Pick<RunRow, "tenant_id" | "epoch" | "seq"> & { run_id: string | null };

/** Stores a checkpoint and its changed channel values. The caller holds the fence. */
export async function insertCheckpoint(
  tx: Tx,
  author: Author,
  { values, ...checkpoint }: NewCheckpointData,
): Promise<void> {
  const { thread_id, checkpoint_ns } = checkpoint;
  await tx.enqueue(insertQuery(tx, { ...author, language: "js", ...checkpoint }));
  for (const value of values) await tx.enqueue(insertValueQuery(tx, { ...author, thread_id, checkpoint_ns, ...value }));
}

const insertQuery = prepared<Omit<CheckpointRow, "created_at">, unknown>((k, p) =>
  k
    .insertInto("checkpoints")
    .values({
      thread_id: p("thread_id"),
      checkpoint_ns: p("checkpoint_ns"),
      checkpoint_id: p("checkpoint_id"),
      tenant_id: p("tenant_id"),
      parent_checkpoint_id: p("parent_checkpoint_id"),
      run_id: p("run_id"),
      epoch: p("epoch"),
      checkpoint: p("checkpoint"),
      metadata: p("metadata"),
      language: p("language"),
      created_at: nowMs,
    })
    // LangGraph writes a checkpoint again when its metadata has changed (durability "exit"). Checkpoints of other runs stay unchanged,
    // because a rollback of this run could not restore them.
    .onConflict((conflict) =>
      conflict
        .columns(["thread_id", "checkpoint_ns", "checkpoint_id"])
        .doUpdateSet((e) => ({
          checkpoint: e.ref("excluded.checkpoint"),
          metadata: e.ref("excluded.metadata"),
          epoch: e.ref("excluded.epoch"),
        }))
        .whereRef("checkpoints.run_id", "=", "excluded.run_id"),
    ),
);

const insertValueQuery = prepared<CheckpointValueRow, unknown>((k, p) =>
  k
    .insertInto("checkpoint_values")
    .values({
      thread_id: p("thread_id"),
      checkpoint_ns: p("checkpoint_ns"),
      channel: p("channel"),
      version: p("version"),
      tenant_id: p("tenant_id"),
      run_id: p("run_id"),
      type: p("type"),
      value: p("value"),
    })
    .onConflict((conflict) => conflict.columns(["thread_id", "checkpoint_ns", "version", "channel"]).doNothing()),
);

/**
 * Stores the writes of a checkpoint's tasks. A task that ran twice keeps its first writes. For errors, interrupts and resume values
 * (negative `idx`) the newest is valid; those of earlier runs stay in lower layers.
 */
export async function insertWrites(
  tx: Tx,
  author: Author,
  at: { thread_id: string; checkpoint_ns: string; checkpoint_id: string },
  writes: readonly WriteData[],
): Promise<void> {
  const { tenant_id, run_id, seq } = author;
  for (const write of writes) {
    const [query, layer] = write.idx < 0 ? [replaceWriteQuery, seq] : [keepWriteQuery, 0];
    await tx.enqueue(query(tx, { tenant_id, run_id, layer, ...at, ...write }));
  }
}

const writeQuery = (replace: boolean) =>
  prepared<CheckpointWriteRow, unknown>((k, p) =>
    k
      .insertInto("checkpoint_writes")
      .values({
        thread_id: p("thread_id"),
        checkpoint_ns: p("checkpoint_ns"),
        checkpoint_id: p("checkpoint_id"),
        task_id: p("task_id"),
        task_path: p("task_path"),
        idx: p("idx"),
        layer: p("layer"),
        tenant_id: p("tenant_id"),
        run_id: p("run_id"),
        channel: p("channel"),
        type: p("type"),
        value: p("value"),
      })
      .onConflict((conflict) => {
        const same = conflict.columns(["thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "layer"]);
        return replace
          ? same.doUpdateSet((e) => ({
              run_id: e.ref("excluded.run_id"),
              task_path: e.ref("excluded.task_path"),
              channel: e.ref("excluded.channel"),
              type: e.ref("excluded.type"),
              value: e.ref("excluded.value"),
            }))
          : same.doNothing();
      }),
  );
const keepWriteQuery = writeQuery(false);
const replaceWriteQuery = writeQuery(true);
