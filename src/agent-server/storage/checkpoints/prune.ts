import { sql } from "kysely";
import type { Tx } from "../../../platform/database/database.ts";
import type { CheckpointRow } from "../schema.ts";
import { versionsIn } from "./checkpoints.ts";

type Row = Pick<CheckpointRow, "checkpoint_ns" | "checkpoint_id" | "parent_checkpoint_id" | "checkpoint" | "metadata">;

/**
 * Deletes the checkpoints of a thread without active runs, except the newest of each namespace and the ancestors that it needs. Returns
 * the number of deleted checkpoints.
 */
export async function keepNewestCheckpoints(tx: Tx, thread_id: string): Promise<number> {
  const rows: Row[] = await tx.all(
    tx.k
      .selectFrom("checkpoints")
      .select(["checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "checkpoint", "metadata"])
      .where("thread_id", "=", thread_id)
      .orderBy("checkpoint_id", "desc"),
  );
  let deleted = 0;
  for (const [checkpoint_ns, all] of Map.groupBy(rows, (row) => row.checkpoint_ns)) {
    const kept = neededBy(all);
    if (kept.length === all.length) continue;
    const ids = kept.map(({ checkpoint_id }) => checkpoint_id);
    const versions = [...new Set(kept.flatMap((row) => versionsIn(row).map(([, version]) => version)))];
    for (const table of ["checkpoint_writes", "checkpoints"] as const)
      await tx.run(
        tx.k
          .deleteFrom(table)
          .where("thread_id", "=", thread_id)
          .where("checkpoint_ns", "=", checkpoint_ns)
          .where("checkpoint_id", "not in", ids),
      );
    const unused = tx.k
      .deleteFrom("checkpoint_values")
      .where("thread_id", "=", thread_id)
      .where("checkpoint_ns", "=", checkpoint_ns);
    await tx.run(versions.length > 0 ? unused.where("version", "not in", versions) : unused);
    const last = kept.at(-1) as Row;
    const parentless = tx.k.updateTable("checkpoints").set({ parent_checkpoint_id: null });
    await tx.run(
      parentless
        .where("thread_id", "=", thread_id)
        .where("checkpoint_ns", "=", checkpoint_ns)
        .where("checkpoint_id", "=", last.checkpoint_id),
    );
    deleted += all.length - kept.length;
  }
  return deleted;
}

/** Returns the newest checkpoint, followed by its ancestors up to one that has all values itself. */
function neededBy([newest, ...others]: readonly Row[]): Row[] {
  const by_id = new Map(others.map((row) => [row.checkpoint_id, row]));
  const needed: Row[] = [];
  for (let row = newest; row; row = by_id.get(row.parent_checkpoint_id ?? "")) {
    needed.push(row);
    // LangGraph rebuilds the values of its DeltaChannel from the writes since the last snapshot.
    if (!row.metadata.includes('"counters_since_delta_snapshot"')) break;
  }
  return needed;
}

export interface StoredSize {
  count: number;
  bytes: number;
}

/** Returns the size of the stored checkpoints of a thread, without indexes. */
export async function checkpointSizes(tx: Tx, thread_id: string) {
  const size = async (table: "checkpoints" | "checkpoint_writes", text: string): Promise<StoredSize> => {
    const sizes = tx.k.selectFrom(table).select(sizeOf(text)).where("thread_id", "=", thread_id);
    return toSize(await tx.first(sizes));
  };
  const channels = await tx.all(
    tx.k
      .selectFrom("checkpoint_values")
      .select("channel")
      .select(sizeOf("value"))
      .where("thread_id", "=", thread_id)
      .groupBy("channel")
      .orderBy("channel"),
  );
  return {
    checkpoints: await size("checkpoints", "checkpoint || metadata"),
    channels: channels.map((row) => ({ channel: row.channel, ...toSize(row) })),
    writes: await size("checkpoint_writes", "value"),
  };
}

const sizeOf = (text: string) => [
  sql<number>`count(*)`.as("count"),
  sql<number>`coalesce(sum(octet_length(${sql.raw(text)})), 0)`.as("bytes"),
];

const toSize = (row: { count: number; bytes: number } | undefined): StoredSize => ({
  count: Number(row?.count ?? 0),
  bytes: Number(row?.bytes ?? 0),
});
