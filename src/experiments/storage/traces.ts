import { sql } from "kysely";
import type { Tx } from "../../platform/database/database.ts";
import { byIds, insertMany } from "../../platform/database/insert-many.ts";
import type { OwnUsage, TraceAttachmentRow, TracePayloadRow, TraceRunRow, TreeUsage } from "./schema.ts";

type NewTraceRun = Omit<TraceRunRow, "run_no">;

export const findTraceRuns = (tx: Tx, tenant_id: string, ids: string[]): Promise<TraceRunRow[]> =>
  byIds(ids, (batch) =>
    tx.all(tx.k.selectFrom("trace_runs").selectAll().where("tenant_id", "=", tenant_id).where("run_id", "in", batch)),
  );

/** The children of these runs whose position was a guess, because their parent was unknown. */
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

/** The columns that determine the position of a run in its tree, and the sums of tokens and costs. */
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
  "merge_state",
] as const;

export const traceNodes = (tx: Tx, tenant_id: string, trace_ids: string[]): Promise<TraceNode[]> =>
  byIds(trace_ids, (batch) =>
    tx.all(
      tx.k
        .selectFrom("trace_runs")
        .select(NODE_COLUMNS)
        .select(["prompt_tokens", "completion_tokens", "total_tokens", "prompt_cost", "completion_cost", "total_cost"])
        .select(["first_token_us", "tree_prompt_tokens", "tree_completion_tokens", "tree_total_tokens"])
        .select(["tree_prompt_cost", "tree_completion_cost", "tree_total_cost", "tree_first_token_us"])
        .where("tenant_id", "=", tenant_id)
        .where("trace_id", "in", batch),
    ),
  );

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

/** An attachment that was sent again is replaced and keeps its token. */
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

export const findAttachment = (tx: Tx, token: string): Promise<AttachmentInfo | undefined> =>
  tx.first(tx.k.selectFrom("trace_attachments").select(["run_no", "name", "mime_type"]).where("token", "=", token));

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

/** Deletes the traces of a session, including their payloads and attachments. */
export async function deleteTraces(tx: Tx, experiment_no: number): Promise<void> {
  const runs = sql`(select run_no from trace_runs where experiment_no = ${experiment_no})`;
  for (const table of ["trace_attachments", "trace_payloads"] as const)
    await tx.run(sql`delete from ${sql.table(table)} where run_no in ${runs}`.compile(tx.k));
  await tx.run(tx.k.deleteFrom("trace_runs").where("experiment_no", "=", experiment_no));
}

/** The roots of a session, from which its statistics are computed. */
export const rootOutcomes = (tx: Tx, experiment_no: number): Promise<RootOutcome[]> =>
  tx.all(
    tx.k
      .selectFrom("trace_runs")
      .select(["start_us", "end_us", "error", "tree_prompt_tokens", "tree_completion_tokens", "tree_total_tokens"])
      .select(["tree_prompt_cost", "tree_completion_cost", "tree_total_cost", "tree_first_token_us"])
      .where("experiment_no", "=", experiment_no)
      .where(sql<boolean>`is_root = 1`),
  );

type RootOutcome = Pick<TraceRunRow, "start_us" | "end_us" | "error"> & TreeUsage;
