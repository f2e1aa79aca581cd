import { sql } from "kysely";
import type { Tx } from "../../../platform/database/database.ts";
import { byIds, insertMany } from "../../../platform/database/insert-many.ts";
import { afterCursor, type RunCursor } from "../runs.ts";
import type { OwnUsage, TraceAttachmentRow, TracePayloadRow, TraceRunRow, TreeUsage } from "./trace-schema.ts";

/** The row contains the error truncated to this length. The payload contains the whole error. */
export const MAX_ERROR_CHARS = 1_000;

type NewTraceRun = Omit<TraceRunRow, "run_no">;

export const findTraceRuns = (tx: Tx, tenant_id: string, ids: string[]): Promise<TraceRunRow[]> =>
  byIds(ids, (batch) =>
    tx.all(tx.k.selectFrom("trace_runs").selectAll().where("tenant_id", "=", tenant_id).where("run_id", "in", batch)),
  );

/** Returns those children of these runs whose position is provisional, because their parent was unknown. */
export const provisionalChildren = (tx: Tx, tenant_id: string, parent_ids: string[]): Promise<TraceRunRow[]> =>
  byIds(parent_ids, (batch) =>
    tx.all(
      tx.k
        .selectFrom("trace_runs")
        .selectAll()
        .where("tenant_id", "=", tenant_id)
        .where("is_provisional", "=", 1)
        .where("parent_run_id", "in", batch),
    ),
  );

export const payloadsOf = (tx: Tx, run_numbers: number[]): Promise<TracePayloadRow[]> =>
  byIds(run_numbers, (batch) => tx.all(tx.k.selectFrom("trace_payloads").selectAll().where("run_no", "in", batch)));

/** The columns that place a run in its trace, session and thread, and the tokens and costs of the run and of its tree. */
export type TraceNode = Pick<TraceRunRow, (typeof NODE_COLUMNS)[number]> & OwnUsage & TreeUsage;

const NODE_COLUMNS = [
  "run_id",
  "experiment_no",
  "trace_id",
  "parent_run_id",
  "dotted_order",
  "is_root",
  "is_provisional",
  "run_type",
  "thread_id",
  "merge_state",
] as const;

/** Returns all runs of the given traces. */
export const traceNodes = (tx: Tx, tenant_id: string, trace_ids: string[]): Promise<TraceNode[]> =>
  nodesBy(tx, tenant_id, "trace_id", trace_ids);

export const findNodes = (tx: Tx, tenant_id: string, run_ids: string[]): Promise<TraceNode[]> =>
  nodesBy(tx, tenant_id, "run_id", run_ids);

const nodesBy = (tx: Tx, tenant_id: string, column: "trace_id" | "run_id", ids: string[]): Promise<TraceNode[]> =>
  byIds(ids, (batch) =>
    tx.all(
      tx.k
        .selectFrom("trace_runs")
        .select(NODE_COLUMNS)
        .select(["prompt_tokens", "completion_tokens", "total_tokens", "prompt_cost", "completion_cost", "total_cost"])
        .select(["first_token_us", "tree_prompt_tokens", "tree_completion_tokens", "tree_total_tokens"])
        .select(["tree_prompt_cost", "tree_completion_cost", "tree_total_cost", "tree_first_token_us"])
        .where("tenant_id", "=", tenant_id)
        .where(column, "in", batch),
    ),
  );

/** The number of stored runs by trace; missing for a trace without runs. */
export async function traceSizes(tx: Tx, tenant_id: string, trace_ids: string[]): Promise<Map<string, number>> {
  const rows = await byIds(trace_ids, (batch) =>
    tx.all(
      tx.k
        .selectFrom("trace_runs")
        .select((r) => ["trace_id", r.fn.countAll<number>().as("size")])
        .where("tenant_id", "=", tenant_id)
        .where("trace_id", "in", batch)
        .groupBy("trace_id"),
    ),
  );
  return new Map(rows.map(({ trace_id, size }) => [trace_id, Number(size)]));
}

/** The traces in which one of these runs has stored children. */
export async function tracesWithChildren(
  tx: Tx,
  tenant_id: string,
  trace_ids: string[],
  parent_ids: string[],
): Promise<string[]> {
  const rows = await byIds(parent_ids, (batch) =>
    tx.all(
      tx.k
        .selectFrom("trace_runs")
        .select("trace_id")
        .distinct()
        .where("tenant_id", "=", tenant_id)
        .where("trace_id", "in", trace_ids)
        .where("parent_run_id", "in", batch),
    ),
  );
  return rows.map(({ trace_id }) => trace_id);
}

/** @returns the numbers of the runs by id */
export async function insertTraceRuns(tx: Tx, runs: NewTraceRun[]): Promise<Map<string, number>> {
  await insertMany(tx, "trace_runs", runs);
  const [first] = runs;
  if (!first) return new Map();
  const ids = runs.map(({ run_id }) => run_id);
  const rows = await byIds(ids, (batch) =>
    tx.all(
      tx.k
        .selectFrom("trace_runs")
        .select(["run_no", "run_id"])
        .where("tenant_id", "=", first.tenant_id)
        .where("run_id", "in", batch),
    ),
  );
  return new Map(rows.map(({ run_id, run_no }) => [run_id, run_no]));
}

export const insertPayloads = (tx: Tx, payloads: TracePayloadRow[]): Promise<void> =>
  insertMany(tx, "trace_payloads", payloads);

export async function updateTraceRun(
  tx: Tx,
  { tenant_id, run_id }: Pick<TraceRunRow, "tenant_id" | "run_id">,
  changes: Partial<NewTraceRun>,
): Promise<void> {
  const query = tx.k.updateTable("trace_runs").set(changes);
  await tx.run(query.where("tenant_id", "=", tenant_id).where("run_id", "=", run_id));
}

export async function updatePayload(tx: Tx, { run_no, ...payload }: TracePayloadRow): Promise<void> {
  await tx.run(tx.k.updateTable("trace_payloads").set(payload).where("run_no", "=", run_no));
}

/** Stores an attachment. If it was sent before, it is replaced and keeps its token. */
export async function putAttachment(tx: Tx, row: TraceAttachmentRow): Promise<void> {
  const { data, mime_type } = row;
  await tx.run(
    tx.k
      .insertInto("trace_attachments")
      .values(row)
      .onConflict((conflict) => conflict.columns(["run_no", "name"]).doUpdateSet({ data, mime_type })),
  );
}

export async function attachmentNames(tx: Tx, run_no: number): Promise<string[]> {
  const rows = await tx.all(tx.k.selectFrom("trace_attachments").select("name").where("run_no", "=", run_no));
  return rows.map(({ name }) => name);
}

export type AttachmentInfo = Pick<TraceAttachmentRow, "run_no" | "name" | "mime_type">;

/** The attachments whose token begins with the text: usually one. */
export const attachmentsBySecret = (tx: Tx, beginning: string): Promise<(AttachmentInfo & { token: string })[]> =>
  tx.all(
    tx.k
      .selectFrom("trace_attachments")
      .select(["run_no", "name", "mime_type", "token"])
      .where(tokenBeginsWith(beginning)),
  );

/** Tokens are hexadecimal. A range, so that the database uses the index. */
export const tokenBeginsWith = (beginning: string) =>
  sql<boolean>`token >= ${beginning} and token < ${`${beginning}g`}`;

export const attachmentOf = (tx: Tx, run_no: number, name: string): Promise<AttachmentInfo | undefined> =>
  tx.first(
    tx.k
      .selectFrom("trace_attachments")
      .select(["run_no", "name", "mime_type"])
      .where("run_no", "=", run_no)
      .where("name", "=", name),
  );

export async function readAttachment(tx: Tx, run_no: number, name: string): Promise<Uint8Array> {
  const query = tx.k.selectFrom("trace_attachments").select("data");
  return (await tx.first(query.where("run_no", "=", run_no).where("name", "=", name)))?.data ?? new Uint8Array();
}

/** The sessions of runs by run id. */
export async function sessionNumbersOf(tx: Tx, tenant_id: string, ids: string[]): Promise<Map<string, number>> {
  const rows = await byIds(ids, (batch) =>
    tx.all(
      tx.k
        .selectFrom("trace_runs")
        .select(["run_id", "experiment_no"])
        .where("tenant_id", "=", tenant_id)
        .where("run_id", "in", batch),
    ),
  );
  return new Map(rows.map(({ run_id, experiment_no }) => [run_id, experiment_no]));
}

/** A run with its place in a trace. */
export type TraceMember = Pick<TraceRunRow, "run_id" | "trace_id" | "dotted_order" | "end_us" | "experiment_no">;

/** All runs of the traces that contain these runs. */
export const runsOfTraces = (tx: Tx, tenant_id: string, run_ids: string[]): Promise<TraceMember[]> =>
  byIds(run_ids, (batch) =>
    tx.all(
      tx.k
        .selectFrom("trace_runs")
        .select(["run_id", "trace_id", "dotted_order", "end_us", "experiment_no"])
        .where("tenant_id", "=", tenant_id)
        .where("trace_id", "in", (e) =>
          e.selectFrom("trace_runs").select("trace_id").where("tenant_id", "=", tenant_id).where("run_id", "in", batch),
        ),
    ),
  );

/** Deletes runs with their payloads, attachments, feedback, shares, annotation queue items and rows of experiments. */
export async function deleteTraceRuns(tx: Tx, tenant_id: string, run_ids: string[]): Promise<void> {
  await byIds(run_ids, async (batch) => {
    const ids = sql`(${sql.join(batch)})`;
    const runs = sql`(select run_no from trace_runs where tenant_id = ${tenant_id} and run_id in ${ids})`;
    for (const table of ["trace_attachments", "trace_payloads"] as const)
      await tx.run(sql`delete from ${sql.table(table)} where run_no in ${runs}`.compile(tx.k));
    await tx.run(
      sql`delete from experiment_outputs where exists (select 1 from experiment_runs r
        where r.tenant_id = ${tenant_id} and r.is_traced = 1 and r.run_id in ${ids}
          and r.experiment_no = experiment_outputs.experiment_no
          and r.example_index = experiment_outputs.example_index and r.repetition = experiment_outputs.repetition)`.compile(
        tx.k,
      ),
    );
    await tx.run(
      tx.k
        .deleteFrom("experiment_runs")
        .where("is_traced", "=", 1)
        .where("tenant_id", "=", tenant_id)
        .where("run_id", "in", batch),
    );
    await tx.run(
      sql`delete from annotation_queue_reviews where item_no in (
        select item_no from annotation_queue_items where tenant_id = ${tenant_id} and run_id in ${ids})`.compile(tx.k),
    );
    for (const table of ["feedback", "run_shares", "annotation_queue_items", "trace_runs"] as const)
      await tx.run(tx.k.deleteFrom(table).where("tenant_id", "=", tenant_id).where("run_id", "in", batch));
    return [];
  });
}

/** Deletes the traces of a session, including their payloads and attachments. */
export async function deleteTraces(tx: Tx, experiment_no: number): Promise<void> {
  const runs = sql`(select run_no from trace_runs where experiment_no = ${experiment_no})`;
  for (const table of ["trace_attachments", "trace_payloads"] as const)
    await tx.run(sql`delete from ${sql.table(table)} where run_no in ${runs}`.compile(tx.k));
  await tx.run(tx.k.deleteFrom("trace_runs").where("experiment_no", "=", experiment_no));
}

/** The roots of a session in the order of their start, each with the number of runs of its trace. */
export function rootsAfter(
  tx: Tx,
  experiment_no: number,
  { after, before_us, limit }: { after: RunCursor | undefined; before_us?: number; limit: number },
): Promise<(RunCursor & { run_count: number })[]> {
  let query = tx.k
    .selectFrom("trace_runs as r")
    .select((q) => [
      "r.run_id",
      "r.start_us",
      q
        .selectFrom("trace_runs as t")
        .select(({ fn }) => fn.countAll<number>().as("count"))
        .whereRef("t.tenant_id", "=", "r.tenant_id")
        .whereRef("t.trace_id", "=", "r.run_id")
        .as("run_count"),
    ])
    .where("r.experiment_no", "=", experiment_no)
    .where(sql<boolean>`r.is_root = 1`);
  if (after) query = query.where(afterCursor(after, false));
  if (before_us !== undefined) query = query.where("r.start_us", "<", before_us);
  return tx.all(query.orderBy("r.start_us").orderBy("r.run_id").limit(limit)) as Promise<
    (RunCursor & { run_count: number })[]
  >;
}

/** The runs of a session that started last. The inner query reads only an index. */
export const newestRuns = (
  tx: Tx,
  experiment_no: number,
  limit: number,
): Promise<Pick<TraceRunRow, "run_type" | "name" | "tags" | "metadata">[]> =>
  tx.all(
    tx.k
      .selectFrom("trace_runs")
      .select(["run_type", "name", "tags", "metadata"])
      .where("run_no", "in", (q) =>
        q
          .selectFrom("trace_runs")
          .select("run_no")
          .where("experiment_no", "=", experiment_no)
          .orderBy("start_us", "desc")
          .limit(limit),
      ),
  );

/** A query of the roots from which a session's statistics are computed. The bound on `start_us` makes SQLite read them by start time. */
export const rootOutcomes = (tx: Tx, experiment_no: number) =>
  tx.k
    .selectFrom("trace_runs")
    .select(["start_us", "end_us", "error", "tree_prompt_tokens", "tree_completion_tokens", "tree_total_tokens"])
    .select(["tree_prompt_cost", "tree_completion_cost", "tree_total_cost", "tree_first_token_us"])
    .where("experiment_no", "=", experiment_no)
    .where("start_us", ">=", 0)
    .where(sql<boolean>`is_root = 1`);
