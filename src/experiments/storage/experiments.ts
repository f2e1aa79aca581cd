import { type Insertable, sql, type Updateable } from "kysely";
import { nowMs, type Schema, type Tx } from "../../platform/database/database.ts";
import { byIds } from "../../platform/database/insert-many.ts";
import { prepared } from "../../platform/database/prepared.ts";
import type { ComparativeQuery } from "../contract/comparison.ts";
import type { SharedSessionQuery } from "../contract/datasets/shared-datasets.ts";
import { deleteItemsOfExperiment } from "./annotation-queues/items.ts";
import { nullsLow } from "./datasets.ts";
import type { ComparativeExperimentRow, ExperimentRow } from "./schema.ts";
import { deleteSharesOfSession } from "./traces/run-shares.ts";
import { deleteTraces } from "./traces/traces.ts";

type NewExperiment = Omit<ExperimentRow, "experiment_no" | "stats_version" | "stats_dirty" | "created_at">;

/** @returns undefined when the name or the id is taken */
export const insertExperiment = (tx: Tx, experiment: NewExperiment): Promise<ExperimentRow | undefined> =>
  tx.first(
    tx.k
      .insertInto("experiments")
      .values({ ...experiment, stats_version: 1, stats_dirty: 0, created_at: nowMs } as Insertable<
        Schema["experiments"]
      >)
      .onConflict((conflict) => conflict.doNothing())
      .returningAll(),
  );

const selectExperiments = (tx: Tx) => tx.k.selectFrom("experiments").selectAll();

export const findExperiment = (tx: Tx, tenant_id: string, experiment_id: string): Promise<ExperimentRow | undefined> =>
  tx.first(findQuery(tx, { tenant_id, experiment_id }));

const findQuery = prepared<Pick<ExperimentRow, "tenant_id" | "experiment_id">, ExperimentRow>((_, p, tx) =>
  selectExperiments(tx).where("tenant_id", "=", p("tenant_id")).where("experiment_id", "=", p("experiment_id")),
);

/** Locks the experiment until the transaction ends. Required to update its statistics. */
export const lockExperiment = (tx: Tx, experiment_no: number): Promise<ExperimentRow | undefined> =>
  tx.first(lockQuery(tx, { experiment_no }));

const lockQuery = prepared<Pick<ExperimentRow, "experiment_no">, ExperimentRow>((_, p, tx) =>
  tx.dialect.forUpdate(selectExperiments(tx).where("experiment_no", "=", p("experiment_no"))),
);

export const findExperimentByNo = (tx: Tx, experiment_no: number): Promise<ExperimentRow | undefined> =>
  tx.first(selectExperiments(tx).where("experiment_no", "=", experiment_no));

export const findExperimentByName = (tx: Tx, tenant_id: string, name: string): Promise<ExperimentRow | undefined> =>
  tx.first(selectExperiments(tx).where("tenant_id", "=", tenant_id).where("name", "=", name));

export const experimentsById = (tx: Tx, tenant_id: string, ids: string[]): Promise<ExperimentRow[]> =>
  byIds(ids, (batch) =>
    tx.all(selectExperiments(tx).where("tenant_id", "=", tenant_id).where("experiment_id", "in", batch)),
  );

export const experimentsOfDataset = (tx: Tx, dataset_no: number): Promise<ExperimentRow[]> =>
  tx.all(selectExperiments(tx).where("dataset_no", "=", dataset_no).orderBy("experiment_no"));

/** `dataset_no` null selects experiments without a dataset. */
interface ExperimentQuery extends SharedSessionQuery {
  dataset_no?: number[] | null | undefined;
  metadata?: object | undefined;
  order_by: ExperimentOrder;
  descending: boolean;
}

/** A column, or the path of a number in the statistics. */
export type ExperimentOrder = { column: "name" | "start_us" } | { stat: string[] };

export function listExperiments(tx: Tx, tenant_id: string, filter: ExperimentQuery): Promise<ExperimentRow[]> {
  const { id, name, name_contains, dataset_no, metadata, order_by, descending, limit, offset } = filter;
  let query = selectExperiments(tx).where("tenant_id", "=", tenant_id);
  if (id) query = query.where("experiment_id", "in", id);
  if (name !== undefined) query = query.where("name", "=", name);
  if (name_contains) query = query.where(tx.dialect.containsText(sql.ref("name"), name_contains));
  if (dataset_no === null) query = query.where("dataset_no", "is", null);
  else if (dataset_no) query = query.where("dataset_no", "in", dataset_no.length > 0 ? dataset_no : [-1]);
  if (metadata)
    query = query.where(sql<boolean>`json_contains(coalesce(extra, '{}'), ${JSON.stringify({ metadata })})`);
  const key = "column" in order_by ? sql.ref(order_by.column) : tx.dialect.jsonNumber("stats", order_by.stat);
  return tx.all(query.orderBy(key, nullsLow(descending)).orderBy("experiment_no", "desc").limit(limit).offset(offset));
}

export const updateExperiment = (
  tx: Tx,
  experiment_no: number,
  changes: Updateable<Schema["experiments"]>,
): Promise<number> => tx.run(tx.k.updateTable("experiments").set(changes).where("experiment_no", "=", experiment_no));

/** Stores statistics and increments their version, which invalidates cached comparisons. */
export const setStats = (tx: Tx, experiment_no: number, stats: string): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("experiments")
      .set((e) => ({ stats, stats_dirty: 0, stats_version: e("stats_version", "+", 1) }))
      .where("experiment_no", "=", experiment_no),
  );

/** Deletes an experiment with its runs, traces, shares, annotation queue items, feedback and score vectors. */
export async function deleteExperiment(tx: Tx, experiment_no: number): Promise<void> {
  await deleteItemsOfExperiment(tx, experiment_no);
  await deleteSharesOfSession(tx, experiment_no);
  await deleteTraces(tx, experiment_no);
  const tables = ["score_vectors", "feedback", "experiment_outputs", "experiment_runs", "experiments"] as const;
  for (const table of tables) await tx.run(tx.k.deleteFrom(table).where("experiment_no", "=", experiment_no));
}

/** @returns undefined when the id is taken */
export const insertComparative = (
  tx: Tx,
  row: ComparativeExperimentRow,
): Promise<ComparativeExperimentRow | undefined> =>
  tx.first(
    tx.k
      .insertInto("comparative_experiments")
      .values(row)
      .onConflict((conflict) => conflict.doNothing())
      .returningAll(),
  );

export function listComparative(
  tx: Tx,
  dataset_no: number,
  { id, name, name_contains, limit, offset }: ComparativeQuery,
): Promise<ComparativeExperimentRow[]> {
  let query = tx.k.selectFrom("comparative_experiments").selectAll().where("dataset_no", "=", dataset_no);
  if (id) query = query.where("comparative_experiment_id", "in", id);
  if (name !== undefined) query = query.where("name", "=", name);
  if (name_contains) query = query.where(tx.dialect.containsText(sql.ref("name"), name_contains));
  return tx.all(query.orderBy("created_at", "desc").orderBy("comparative_experiment_id").limit(limit).offset(offset));
}

export const deleteComparative = (tx: Tx, tenant_id: string, id: string): Promise<number> =>
  tx.run(
    tx.k
      .deleteFrom("comparative_experiments")
      .where("tenant_id", "=", tenant_id)
      .where("comparative_experiment_id", "=", id),
  );

/** Locks sessions until the transaction ends, always in the same order. */
export const lockExperiments = (tx: Tx, numbers: number[]): Promise<ExperimentRow[]> =>
  numbers.length === 0
    ? Promise.resolve([])
    : tx.all(
        tx.dialect.forUpdate(
          tx.k.selectFrom("experiments").selectAll().where("experiment_no", "in", numbers).orderBy("experiment_no"),
        ),
      );

export const experimentsByName = (tx: Tx, tenant_id: string, names: string[]): Promise<ExperimentRow[]> =>
  names.length === 0
    ? Promise.resolve([])
    : tx.all(tx.k.selectFrom("experiments").selectAll().where("tenant_id", "=", tenant_id).where("name", "in", names));

/** Marks the statistics as outdated: the next read computes them. */
export async function markStatsDirty(tx: Tx, numbers: number[]): Promise<void> {
  for (const experiment_no of numbers.toSorted((a, b) => a - b)) await tx.run(dirtyQuery(tx, { experiment_no }));
}

const dirtyQuery = prepared<{ experiment_no: number }, unknown>((k, p) =>
  k
    .updateTable("experiments")
    .set((e) => ({ stats_dirty: 1, stats_version: e("stats_version", "+", 1) }))
    .where("experiment_no", "=", p("experiment_no")),
);

const allDirtyQuery = prepared<Pick<ExperimentRow, "tenant_id">, Pick<ExperimentRow, "experiment_no">>((k, p) =>
  k
    .selectFrom("experiments")
    .select("experiment_no")
    .where("tenant_id", "=", p("tenant_id"))
    .where(sql<boolean>`stats_dirty = 1`),
);

/** Selects sessions of a workspace. Without fields, it selects all of them. */
export interface DirtyFilter {
  id?: string[] | undefined;
  dataset_no?: number[] | null | undefined;
}

/**
 * The sessions whose statistics are outdated; usually none. The first query reads only an index: with the filter, SQLite would read the
 * rows of the experiments, whose statistics are long (2.5 ms for 100 experiments).
 */
export async function dirtyExperiments(tx: Tx, tenant_id: string, { id, dataset_no }: DirtyFilter): Promise<number[]> {
  if (id?.length === 0 || dataset_no?.length === 0) return [];
  const outdated = await tx.all(allDirtyQuery(tx, { tenant_id }));
  if (outdated.length === 0) return [];
  const all = outdated.map(({ experiment_no }) => experiment_no);
  let query = tx.k.selectFrom("experiments").select("experiment_no").where("experiment_no", "in", all);
  if (id) query = query.where("experiment_id", "in", id);
  if (dataset_no === null) query = query.where("dataset_no", "is", null);
  else if (dataset_no) query = query.where("dataset_no", "in", dataset_no);
  return (await tx.all(query.orderBy("experiment_no"))).map(({ experiment_no }) => experiment_no);
}
