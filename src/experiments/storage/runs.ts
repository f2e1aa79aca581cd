import { type Expression, type ExpressionBuilder, type SqlBool, sql } from "kysely";
import type { Schema, Tx } from "../../platform/database/database.ts";
import { byIds, insertMany } from "../../platform/database/insert-many.ts";
import { prepared } from "../../platform/database/prepared.ts";
import { segmentOf } from "../traces/tree-position.ts";
import { compileFilter, UPLOADED } from "./compile-filter.ts";
import type { RunFilter } from "./run-filter.ts";
import type { ExperimentOutputsRow, ExperimentRunRow } from "./schema.ts";

/** The primary key of a row. */
export type RunKey = Pick<ExperimentRunRow, "experiment_no" | "example_index" | "repetition">;

/** A run with the ids of its experiment, dataset and example. Payloads are optional. */
export type FullRun = ExperimentRunRow & {
  experiment_id: string;
  dataset_id: string | null;
  example_id: string | null;
  share_token: string | null;
  inputs?: string | null;
  outputs?: string | null;
};

export async function insertRuns(tx: Tx, runs: ExperimentRunRow[], outputs: ExperimentOutputsRow[]): Promise<void> {
  await insertMany(tx, "experiment_runs", runs);
  await insertMany(tx, "experiment_outputs", outputs);
}

/** The keys of rows by run id. */
export async function rowKeysOf(tx: Tx, tenant_id: string, run_ids: string[]): Promise<Map<string, RunKey>> {
  const rows = await byIds(run_ids, (batch) =>
    tx.all(
      tx.k
        .selectFrom("experiment_runs")
        .select(["run_id", "experiment_no", "example_index", "repetition"])
        .where("tenant_id", "=", tenant_id)
        .where("run_id", "in", batch),
    ),
  );
  return new Map(rows.map(({ run_id, ...key }) => [run_id, key]));
}

/** The number of the next repetition by example; missing for an example without rows. */
export async function nextRepetitions(
  tx: Tx,
  experiment_no: number,
  example_indexes: number[],
): Promise<Map<number, number>> {
  const rows = await byIds(example_indexes, (batch) =>
    tx.all(
      tx.k
        .selectFrom("experiment_runs")
        .select((r) => ["example_index", r.fn.max("repetition").as("last")])
        .where("experiment_no", "=", experiment_no)
        .where("example_index", "in", batch)
        .groupBy("example_index"),
    ),
  );
  return new Map(rows.map(({ example_index, last }) => [example_index, last + 1]));
}

const ROW_KEY = ["experiment_no", "example_index", "repetition"] as const;
const TRACED_COLUMNS = [
  "run_id",
  "tenant_id",
  "example_version",
  "name",
  "start_us",
  "end_us",
  "error",
  "metadata",
  "inputs_preview",
  "outputs_preview",
  "is_traced",
] as const;

const putRowQuery = prepared<ExperimentRunRow, unknown>((k, p) => {
  const values = (names: readonly (keyof ExperimentRunRow)[]) =>
    Object.fromEntries(names.map((name) => [name, p(name)]));
  return k
    .insertInto("experiment_runs")
    .values(values([...ROW_KEY, ...TRACED_COLUMNS]) as never)
    .onConflict((conflict) => conflict.columns(ROW_KEY).doUpdateSet(values(TRACED_COLUMNS)));
});

const putOutputsQuery = prepared<ExperimentOutputsRow, unknown>((k, p) =>
  k
    .insertInto("experiment_outputs")
    .values({
      experiment_no: p("experiment_no"),
      example_index: p("example_index"),
      repetition: p("repetition"),
      outputs: p("outputs"),
    })
    .onConflict((conflict) => conflict.columns(ROW_KEY).doUpdateSet({ outputs: p("outputs") })),
);

/** Stores or replaces the row of a traced run. */
export async function putTracedRow(tx: Tx, row: ExperimentRunRow, outputs: string | null): Promise<void> {
  const { experiment_no, example_index, repetition } = row;
  await tx.run(putRowQuery(tx, row));
  if (outputs !== null) await tx.run(putOutputsQuery(tx, { experiment_no, example_index, repetition, outputs }));
}

/** Deletes the row of a run, with its outputs. */
export async function deleteRow(tx: Tx, { experiment_no, example_index, repetition }: RunKey): Promise<void> {
  for (const table of ["experiment_outputs", "experiment_runs"] as const)
    await tx.run(
      tx.k
        .deleteFrom(table)
        .where("experiment_no", "=", experiment_no)
        .where("example_index", "=", example_index)
        .where("repetition", "=", repetition),
    );
}

export interface RunSearch {
  experiment_no?: number[] | undefined;
  id?: string[] | undefined;
  example_id?: string[] | undefined;
  /** Bounds of the start time in microseconds, inclusive. */
  from_us?: number | undefined;
  to_us?: number | undefined;
  has_error?: boolean | undefined;
  /** Excludes rows that repeat the root of a trace. */
  only_uploaded?: boolean;
  filters: RunFilter[];
}

/** The last run of the previous page, in a list that is sorted by start time and position in the tree. */
export interface RunPosition {
  start_us: number;
  dotted_order: string;
}

/** The last item of the previous page, in a list that is sorted by start time and id. */
export interface RunCursor {
  start_us: number;
  run_id: string;
}

export interface RunPage {
  descending: boolean;
  after?: RunPosition | undefined;
  limit: number;
  /** Whether to also read the inputs and outputs. */
  payloads: boolean;
}

export function searchRuns(tx: Tx, tenant_id: string, search: RunSearch, page: RunPage): Promise<FullRun[]> {
  let query = withIds(tx, page.payloads).where(matching(tx, tenant_id, search));
  const direction = page.descending ? "desc" : "asc";
  if (page.after) query = query.where(afterCursor(toRootCursor(page.after), page.descending));
  return tx.all(
    query.orderBy("r.start_us", direction).orderBy("r.run_id", direction).limit(page.limit),
  ) as unknown as Promise<FullRun[]>;
}

const AFTER_ALL_IDS = "g";

/**
 * Converts a position to one that compares ids: an uploaded run has one segment, of its start and id. The index of the rows has no
 * `dotted_order`.
 */
function toRootCursor({ start_us, dotted_order }: RunPosition): RunCursor {
  const time = segmentOf(start_us, "");
  if (dotted_order.startsWith(time)) return { start_us, run_id: dotted_order.slice(time.length) };
  return { start_us, run_id: time > dotted_order ? "" : AFTER_ALL_IDS };
}

/** Selects the items after the cursor. */
export const afterCursor = ({ start_us, run_id }: RunCursor, descending: boolean) =>
  sql<boolean>`(r.start_us, r.run_id) ${sql.raw(descending ? "<" : ">")} (${start_us}, ${run_id})`;

/** The primary key of a run and the columns from which run statistics are computed. */
type RunOutcome = Pick<
  ExperimentRunRow,
  "experiment_no" | "example_index" | "repetition" | "start_us" | "end_us" | "error"
>;

/** The matching runs, in no particular order. */
export const searchRunKeys = (tx: Tx, tenant_id: string, search: RunSearch): Promise<RunOutcome[]> =>
  tx.all(
    withIds(tx, false)
      .clearSelect()
      .select(["r.experiment_no", "r.example_index", "r.repetition", "r.start_us", "r.end_us", "r.error"])
      .where(matching(tx, tenant_id, search)),
  ) as Promise<RunOutcome[]>;

export const findRun = (tx: Tx, tenant_id: string, run_id: string): Promise<FullRun | undefined> =>
  tx.first(withIds(tx, true).where("r.tenant_id", "=", tenant_id).where("r.run_id", "=", run_id)) as unknown as Promise<
    FullRun | undefined
  >;

export type RunWithOutputs = ExperimentRunRow & { share_token: string | null; outputs?: string | null };

/** Omits the inputs and the ids of {@link withIds}: reading them per run (500) took a quarter of the response time of a page on Postgres. */
export const runsAt = (
  tx: Tx,
  experiments: number[],
  example_indexes: number[],
  payloads: boolean,
): Promise<RunWithOutputs[]> =>
  byIds(example_indexes, (batch) => {
    const query = tx.k
      .selectFrom("experiment_runs as r")
      .leftJoin("run_shares as s", (join) =>
        join.onRef("s.tenant_id", "=", "r.tenant_id").onRef("s.run_id", "=", "r.run_id"),
      )
      .selectAll("r")
      .select("s.share_token")
      .where("r.experiment_no", "in", experiments)
      .where("r.example_index", "in", batch)
      .orderBy("r.experiment_no")
      .orderBy("r.example_index")
      .orderBy("r.repetition");
    return tx.all(payloads ? query.select(outputsOf) : query) as Promise<RunWithOutputs[]>;
  });

export const runOutcomes = (
  tx: Tx,
  experiment_no: number,
): Promise<(Omit<RunOutcome, "experiment_no"> & Pick<ExperimentRunRow, "is_traced">)[]> =>
  tx.all(
    tx.k
      .selectFrom("experiment_runs")
      .select(["example_index", "repetition", "start_us", "end_us", "error", "is_traced"])
      .where("experiment_no", "=", experiment_no),
  );

function withIds(tx: Tx, payloads: boolean) {
  const query = tx.k
    .selectFrom("experiment_runs as r")
    .innerJoin("experiments as x", "x.experiment_no", "r.experiment_no")
    .leftJoin("examples as e", (join) =>
      join.onRef("e.dataset_no", "=", "x.dataset_no").onRef("e.example_index", "=", "r.example_index"),
    )
    .leftJoin("datasets as d", "d.dataset_no", "x.dataset_no")
    .leftJoin("run_shares as s", (join) =>
      join.onRef("s.tenant_id", "=", "r.tenant_id").onRef("s.run_id", "=", "r.run_id"),
    )
    .selectAll("r")
    .select(["x.experiment_id", "d.dataset_id", "e.example_id", "s.share_token"]);
  if (!payloads) return query;
  return query
    .select(outputsOf)
    .select((q) =>
      q
        .selectFrom("example_versions as v")
        .whereRef("v.dataset_no", "=", "x.dataset_no")
        .whereRef("v.example_index", "=", "r.example_index")
        .whereRef("v.version", "=", "r.example_version")
        .select("v.inputs")
        .as("inputs"),
    );
}

/** The outputs of the run `r`. */
const outputsOf = (q: ExpressionBuilder<Schema & { r: ExperimentRunRow }, "r">) =>
  q
    .selectFrom("experiment_outputs as o")
    .whereRef("o.experiment_no", "=", "r.experiment_no")
    .whereRef("o.example_index", "=", "r.example_index")
    .whereRef("o.repetition", "=", "r.repetition")
    .select("o.outputs")
    .as("outputs");

function matching(tx: Tx, tenant_id: string, search: RunSearch): Expression<SqlBool> {
  const all: Expression<SqlBool>[] = search.filters.map((filter) => compileFilter(tx, filter, UPLOADED));
  const { example_id, from_us, to_us, has_error, only_uploaded } = search;
  all.push(inWorkspace(tenant_id, search));
  if (only_uploaded) all.push(sql`r.is_traced = 0`);
  if (example_id) all.push(oneOf("e.example_id", example_id));
  if (from_us !== undefined) all.push(sql`r.start_us >= ${from_us}`);
  if (to_us !== undefined) all.push(sql`r.start_us <= ${to_us}`);
  if (has_error !== undefined) all.push(has_error ? sql`r.error is not null` : sql`r.error is null`);
  return sql.join(all, sql` and `);
}

/**
 * Selects the runs `r` of a workspace, in the experiments and with the ids of the search. If there are several experiments, the workspace is
 * compared in their rows: with `r.tenant_id`, SQLite would read all runs of the workspace in searches of five or more.
 */
export function inWorkspace(
  tenant_id: string,
  { experiment_no, id }: Pick<RunSearch, "experiment_no" | "id">,
): Expression<SqlBool> {
  if (experiment_no && experiment_no.length > 1 && !id)
    return sql`r.experiment_no in (select experiment_no from experiments
      where tenant_id = ${tenant_id} and ${oneOf("experiment_no", experiment_no)})`;
  const all: Expression<SqlBool>[] = [sql`r.tenant_id = ${tenant_id}`];
  if (experiment_no) all.push(oneOf("r.experiment_no", experiment_no));
  if (id) all.push(oneOf("r.run_id", id));
  return sql.join(all, sql` and `);
}

export const oneOf = (column: string, values: readonly (string | number)[]): Expression<SqlBool> =>
  values.length === 0 ? sql`1 = 0` : sql`${sql.ref(column)} in (${sql.join(values)})`;
