import { sql } from "kysely";
import type { Tx } from "../../../platform/database/database.ts";
import type { AncestorData, AncestorFilter, ValueData, WriteData } from "../../graph-hosts/checkpoint-requests.ts";
import type { CheckpointRow } from "../schema.ts";
import { findCheckpoint, MAX_CHARS, NO_RUN, newestLayer, versionsIn } from "./checkpoints.ts";

type Ancestor = Pick<CheckpointRow, "checkpoint_id" | "parent_checkpoint_id" | "checkpoint">;

/** Checkpoints per query. */
const MAX_ROWS = 200;

/**
 * Returns the ancestors of a checkpoint, newest first, up to those that have a stored value of each channel. `isWhole` is false if the
 * response would be larger: the next one starts with the parent of the last ancestor.
 */
export async function listAncestors(
  tx: Tx,
  filter: AncestorFilter,
): Promise<{ checkpoints: AncestorData[]; isWhole: boolean }> {
  const checkpoints: AncestorData[] = [];
  const left = new Set(filter.channels);
  const newest = await findCheckpoint(tx, filter);
  let next = (filter.with_itself ? newest?.checkpoint_id : newest?.parent_checkpoint_id) ?? null;
  for (let chars = 0; next !== null && left.size > 0; ) {
    if (chars > MAX_CHARS) return { checkpoints, isWhole: false };
    const rows = await chainFrom(tx, filter, next);
    if (rows.length === 0) break;
    const storedAt = await storedValues(tx, filter, rows, left);
    const writesOf = await storedWrites(tx, filter, rows, left);
    for (const { checkpoint_id, parent_checkpoint_id, checkpoint } of rows) {
      const values = versionsIn({ checkpoint })
        .filter(([channel]) => left.has(channel))
        .flatMap(([channel, version]) => storedAt.get(`${channel}\0${version}`) ?? []);
      const writes = (writesOf.get(checkpoint_id) ?? []).filter(({ channel }) => left.has(channel));
      checkpoints.push({ checkpoint_id, parent_checkpoint_id, values, writes });
      chars += [...values, ...writes].reduce((sum, { value }) => sum + value.length, 0);
      for (const { channel } of values) left.delete(channel);
      next = parent_checkpoint_id;
      if (left.size === 0 || chars > MAX_CHARS) break;
    }
  }
  return { checkpoints, isWhole: true };
}

type Namespace = Pick<AncestorFilter, "thread_id" | "checkpoint_ns" | "without">;

/** Returns a checkpoint and its ancestors, at most {@link MAX_ROWS}. */
async function chainFrom(tx: Tx, at: Namespace, first: string): Promise<Ancestor[]> {
  const chain = tx.k
    .withRecursive("chain", (w) =>
      w
        .selectFrom("checkpoints")
        .select(["checkpoint_id", "parent_checkpoint_id", "checkpoint", sql<number>`1`.as("depth")])
        .where("thread_id", "=", at.thread_id)
        .where("checkpoint_ns", "=", at.checkpoint_ns)
        .where("checkpoint_id", "=", first)
        .where("run_id", "is distinct from", at.without ?? NO_RUN)
        .unionAll((u) =>
          u
            .selectFrom("checkpoints as c")
            .innerJoin("chain", "chain.parent_checkpoint_id", "c.checkpoint_id")
            .select((e) => [
              "c.checkpoint_id",
              "c.parent_checkpoint_id",
              "c.checkpoint",
              e("chain.depth", "+", 1).as("depth"),
            ])
            .where("c.thread_id", "=", at.thread_id)
            .where("c.checkpoint_ns", "=", at.checkpoint_ns)
            .where("c.run_id", "is distinct from", at.without ?? NO_RUN)
            .where("chain.depth", "<", MAX_ROWS)
            .$castTo<Ancestor & { depth: number }>(),
        ),
    )
    .selectFrom("chain")
    .select(["checkpoint_id", "parent_checkpoint_id", "checkpoint"])
    .orderBy("depth");
  return tx.all(chain);
}

async function storedValues(
  tx: Tx,
  at: Namespace,
  rows: Ancestor[],
  channels: ReadonlySet<string>,
): Promise<Map<string, ValueData>> {
  const versions = rows.flatMap((row) => versionsIn(row).filter(([channel]) => channels.has(channel)));
  if (versions.length === 0) return new Map();
  const found = await tx.all(
    tx.k
      .selectFrom("checkpoint_values")
      .select(["channel", "version", "type", "value"])
      .where("thread_id", "=", at.thread_id)
      .where("checkpoint_ns", "=", at.checkpoint_ns)
      .where("channel", "in", [...channels])
      .where("version", "in", [...new Set(versions.map(([, version]) => version))])
      .where("type", "!=", "empty"),
  );
  return new Map(found.map((value) => [`${value.channel}\0${value.version}`, value]));
}

/** The writes of other channels are needed without their values, because they may be newer layers. */
async function storedWrites(
  tx: Tx,
  at: Namespace,
  rows: Ancestor[],
  channels: ReadonlySet<string>,
): Promise<Map<string, WriteData[]>> {
  const isWanted = sql`channel in (${sql.join([...channels])})`;
  const found = await tx.all(
    tx.k
      .selectFrom("checkpoint_writes")
      .select(["checkpoint_id", "task_id", "task_path", "idx", "layer", "channel", "type"])
      .select(sql<string>`case when ${isWanted} then value else '' end`.as("value"))
      .where("thread_id", "=", at.thread_id)
      .where("checkpoint_ns", "=", at.checkpoint_ns)
      .where(
        "checkpoint_id",
        "in",
        rows.map(({ checkpoint_id }) => checkpoint_id),
      )
      .where("run_id", "is distinct from", at.without ?? NO_RUN)
      .orderBy("task_id")
      .orderBy("idx")
      .orderBy("layer"),
  );
  const byCheckpoint = Map.groupBy(found, ({ checkpoint_id }) => checkpoint_id);
  return new Map(
    [...byCheckpoint].map(([checkpoint_id, writes]) => [
      checkpoint_id,
      newestLayer(writes.map(({ checkpoint_id: _, ...write }) => write)),
    ]),
  );
}
