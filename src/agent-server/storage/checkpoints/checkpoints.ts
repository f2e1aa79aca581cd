import { sql } from "kysely";
import type { Tx } from "../../../platform/database/database.ts";
import { prepared } from "../../../platform/database/prepared.ts";
import type {
  CheckpointData,
  CheckpointFilter,
  Language,
  ValueData,
  WriteData,
} from "../../graph-hosts/checkpoint-requests.ts";
import type { CheckpointRow } from "../schema.ts";

type Namespace = Pick<CheckpointRow, "thread_id" | "checkpoint_ns">;

/** Finds a checkpoint by its id, or the newest of the namespace. `without` is the id of a run whose checkpoints and writes are excluded. */
export async function findCheckpoint(
  tx: Tx,
  { without = NO_RUN, ...at }: Namespace & { checkpoint_id?: string; without?: string },
): Promise<CheckpointData | undefined> {
  const row = await tx.first(
    at.checkpoint_id
      ? findQuery(tx, { ...at, checkpoint_id: at.checkpoint_id, without })
      : newestQuery(tx, { ...at, without }),
  );
  return row && (await withContents(tx, [row], without))[0];
}

/** No run has this id. */
export const NO_RUN = "";

const COLUMNS = [
  "thread_id",
  "checkpoint_ns",
  "checkpoint_id",
  "parent_checkpoint_id",
  "checkpoint",
  "metadata",
  "language",
] as const;
type Row = Pick<CheckpointRow, (typeof COLUMNS)[number]>;

const namespaceQuery = (k: Tx["k"], p: (name: "thread_id" | "checkpoint_ns" | "without") => string) =>
  k
    .selectFrom("checkpoints")
    .select(COLUMNS)
    .where("run_id", "is distinct from", p("without"))
    .where("thread_id", "=", p("thread_id"))
    .where("checkpoint_ns", "=", p("checkpoint_ns"));

const newestQuery = prepared<Namespace & { without: string }, Row>((k, p) =>
  namespaceQuery(k, p).orderBy("checkpoint_id", "desc").limit(1),
);

const findQuery = prepared<Namespace & { checkpoint_id: string; without: string }, Row>((k, p) =>
  namespaceQuery(k, p).where("checkpoint_id", "=", p("checkpoint_id")),
);

/** Approximate maximum number of characters of values and writes in a page. A page contains at least one checkpoint. */
export const MAX_CHARS = 16_000_000;

/** Returns checkpoints, newest first. `isWhole` is false if {@link MAX_CHARS} ended the page before its limit. */
export async function listCheckpoints(
  tx: Tx,
  filter: CheckpointFilter,
): Promise<{ checkpoints: CheckpointData[]; isWhole: boolean }> {
  let query = tx.k.selectFrom("checkpoints").select(COLUMNS);
  if (filter.thread_id !== undefined) query = query.where("thread_id", "=", filter.thread_id);
  if (filter.checkpoint_ns !== undefined) query = query.where("checkpoint_ns", "=", filter.checkpoint_ns);
  if (filter.checkpoint_id) query = query.where("checkpoint_id", "=", filter.checkpoint_id);
  if (filter.before) query = query.where("checkpoint_id", "<", filter.before);
  if (filter.metadata && Object.keys(filter.metadata).length > 0)
    query = query.where(sql<boolean>`json_contains(metadata, ${JSON.stringify(filter.metadata)})`);
  const rows = await tx.all(query.orderBy("checkpoint_id", "desc").limit(filter.limit));
  const checkpoints: CheckpointData[] = [];
  // The number of checkpoints per read doubles, up to the number that fits, estimated from the mean size of the previous ones.
  for (let chars = 0, count = 1; count >= 1 && checkpoints.length < rows.length; ) {
    const some = await withContents(tx, rows.slice(checkpoints.length, checkpoints.length + count));
    checkpoints.push(...some);
    chars += charsIn(some);
    const fit = Math.floor((MAX_CHARS - chars) / (chars / checkpoints.length + 1));
    count = Math.min(2 * count, fit);
  }
  return { checkpoints, isWhole: checkpoints.length === rows.length };
}

/** Counts shared values once. */
function charsIn(checkpoints: CheckpointData[]): number {
  const stored = new Set(checkpoints.flatMap(({ values, writes }) => [...values, ...writes]));
  return [...stored].reduce((sum, { value }) => sum + value.length, 0);
}

async function withContents(tx: Tx, rows: Row[], without = NO_RUN): Promise<CheckpointData[]> {
  const versionsOf = new Map(rows.map((row) => [row, versionsIn(row)]));
  const values = new Map<string, ValueData>();
  for (const [{ thread_id, checkpoint_ns }, versions] of groupByNamespace(versionsOf)) {
    for (const value of await findValues(tx, { thread_id, checkpoint_ns }, versions)) {
      values.set([thread_id, checkpoint_ns, value.channel, value.version].join("\0"), value);
    }
  }
  const result: CheckpointData[] = [];
  for (const [row, versions] of versionsOf) {
    const { thread_id, checkpoint_ns, checkpoint_id } = row;
    const own = versions.flatMap(
      ([channel, version]) => values.get([thread_id, checkpoint_ns, channel, version].join("\0")) ?? [],
    );
    const writes = await tx.all(writesQuery(tx, { thread_id, checkpoint_ns, checkpoint_id, without }));
    result.push({ ...row, values: own, writes: newestLayer(writes) });
  }
  return result;
}

/**
 * Keeps the write with the highest layer at each position of a task; rows are ordered by layer. Returns writes in the order in which
 * LangGraph applies them: by path (in code points, which is the order of UTF-8 bytes), task and position.
 */
export function newestLayer(writes: (WriteData & { layer: number })[]): WriteData[] {
  const newest = writes
    .filter(({ task_id, idx }, i) => writes[i + 1]?.task_id !== task_id || writes[i + 1]?.idx !== idx)
    .map(({ layer: _, ...write }) => write);
  if (newest.every(({ task_path }) => task_path === "")) return newest;
  return newest.sort((a, b) => Buffer.compare(Buffer.from(a.task_path), Buffer.from(b.task_path)));
}

type ChannelVersion = [channel: string, version: string];

export function versionsIn({ checkpoint }: Pick<Row, "checkpoint">): ChannelVersion[] {
  const { channel_versions = {} } = JSON.parse(checkpoint) as { channel_versions?: Record<string, string | number> };
  return Object.entries(channel_versions).map(([channel, version]) => [channel, String(version)]);
}

/** Collects the versions per namespace, so that the values of a page take one query per namespace and not one per row. */
function groupByNamespace(versionsOf: Map<Row, ChannelVersion[]>): [Namespace, string[]][] {
  const groups = new Map<string, [Namespace, Set<string>]>();
  for (const [row, versions] of versionsOf) {
    const key = `${row.thread_id}\0${row.checkpoint_ns}`;
    const group = groups.get(key) ?? [row, new Set<string>()];
    groups.set(key, group);
    for (const [, version] of versions) group[1].add(version);
  }
  return [...groups.values()].map(([namespace, versions]) => [namespace, [...versions]]);
}

/** Below the limit on bind parameters per statement: 65,535 on Postgres, 32,766 on SQLite. */
const MAX_PARAMETERS = 1000;

async function findValues(tx: Tx, { thread_id, checkpoint_ns }: Namespace, versions: string[]): Promise<ValueData[]> {
  const found: ValueData[] = [];
  for (let at = 0; at < versions.length; at += MAX_PARAMETERS) {
    const some = versions.slice(at, at + MAX_PARAMETERS);
    const rows = await tx.all(
      tx.k
        .selectFrom("checkpoint_values")
        .select(["channel", "version", "type", "value"])
        .where("thread_id", "=", thread_id)
        .where("checkpoint_ns", "=", checkpoint_ns)
        .where("version", "in", some),
    );
    found.push(...rows);
  }
  return found;
}

const writesQuery = prepared<Namespace & { checkpoint_id: string; without: string }, WriteData & { layer: number }>(
  (k, p) =>
    k
      .selectFrom("checkpoint_writes")
      .select(["task_id", "task_path", "idx", "layer", "channel", "type", "value"])
      .where("thread_id", "=", p("thread_id"))
      .where("checkpoint_ns", "=", p("checkpoint_ns"))
      .where("checkpoint_id", "=", p("checkpoint_id"))
      .where("run_id", "is distinct from", p("without"))
      .orderBy("task_id")
      .orderBy("idx")
      .orderBy("layer"),
);

/** Returns the id of the thread's newest root checkpoint. */
export async function findHead(tx: Tx, thread_id: string): Promise<string | undefined> {
  const row = await tx.first(headQuery(tx, { thread_id }));
  return row?.checkpoint_id;
}

/** Returns the language of the graph that wrote the thread's newest root checkpoint. */
export async function findLanguage(tx: Tx, thread_id: string): Promise<Language | undefined> {
  const row = await tx.first(headQuery(tx, { thread_id }));
  return row?.language;
}

const headQuery = prepared<{ thread_id: string }, { checkpoint_id: string; language: Language }>((k, p) =>
  k
    .selectFrom("checkpoints")
    .select(["checkpoint_id", "language"])
    .where("thread_id", "=", p("thread_id"))
    .where("checkpoint_ns", "=", "")
    .orderBy("checkpoint_id", "desc")
    .limit(1),
);

type PrunedRow = Pick<
  CheckpointRow,
  "checkpoint_ns" | "checkpoint_id" | "parent_checkpoint_id" | "checkpoint" | "metadata"
>;

/**
 * Deletes the checkpoints of a thread without active runs, except the newest of each namespace and the ancestors that it needs. Returns
 * the number of deleted checkpoints.
 */
export async function keepNewestCheckpoints(tx: Tx, thread_id: string): Promise<number> {
  const rows: PrunedRow[] = await tx.all(
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
    const last = kept.at(-1) as PrunedRow;
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
function neededBy([newest, ...others]: readonly PrunedRow[]): PrunedRow[] {
  const by_id = new Map(others.map((row) => [row.checkpoint_id, row]));
  const needed: PrunedRow[] = [];
  for (let row = newest; row; row = by_id.get(row.parent_checkpoint_id ?? "")) {
    needed.push(row);
    if (!isRebuilt(row)) break;
  }
  return needed;
}

/** LangGraph rebuilds the values of its DeltaChannel from the writes since the last snapshot. */
export const isRebuilt = ({ metadata }: Pick<CheckpointRow, "metadata">): boolean =>
  metadata.includes('"counters_since_delta_snapshot"');

interface StoredSize {
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
