import { type Insertable, type OrderByItemBuilder, sql } from "kysely";
import { nowMs, type Schema, type Tx } from "../../platform/database/database.ts";
import { byIds } from "../../platform/database/insert-many.ts";
import { prepared } from "../../platform/database/prepared.ts";
import type { DatasetQuery } from "../contract/datasets/datasets.ts";
import type { DatasetRow } from "./schema.ts";

export interface DatasetWithCounts extends DatasetRow {
  session_count: number;
  last_session_start_us: number | null;
}

const withCounts = (tx: Tx, tenant_id: string) =>
  tx.k
    .selectFrom("datasets")
    .selectAll()
    .select((d) => [
      d
        .selectFrom("experiments")
        .whereRef("experiments.dataset_no", "=", "datasets.dataset_no")
        .select((e) => e.fn.countAll<number>().as("n"))
        .as("session_count"),
      d
        .selectFrom("experiments")
        .whereRef("experiments.dataset_no", "=", "datasets.dataset_no")
        .select((e) => e.fn.max("start_us").as("last"))
        .as("last_session_start_us"),
    ])
    .where("tenant_id", "=", tenant_id);

const INITIAL_VALUES = {
  baseline_experiment_id: null,
  share_token: null,
  shares_experiments: 0,
  example_count: 0,
  next_example_index: 0,
  next_test_run: 1,
  created_at: nowMs,
  modified_at: nowMs,
};

type NewDataset = Omit<DatasetRow, "dataset_no" | keyof typeof INITIAL_VALUES>;

/** @returns undefined when the id or the name is taken */
export const insertDataset = (tx: Tx, dataset: NewDataset): Promise<DatasetRow | undefined> =>
  tx.first(
    tx.k
      .insertInto("datasets")
      .values({ ...dataset, ...INITIAL_VALUES } as Insertable<Schema["datasets"]>)
      .onConflict((conflict) => conflict.doNothing())
      .returningAll(),
  );

const findQuery = prepared<Pick<DatasetRow, "tenant_id" | "dataset_id">, DatasetWithCounts>((_, p, tx) =>
  withCounts(tx, p("tenant_id")).where("dataset_id", "=", p("dataset_id")).$castTo<DatasetWithCounts>(),
);

export const findDataset = (tx: Tx, tenant_id: string, dataset_id: string): Promise<DatasetWithCounts | undefined> =>
  tx.first(findQuery(tx, { tenant_id, dataset_id }));

export const findDatasetByName = (tx: Tx, tenant_id: string, name: string): Promise<DatasetWithCounts | undefined> =>
  tx.first(withCounts(tx, tenant_id).where("name", "=", name)) as Promise<DatasetWithCounts | undefined>;

const selectDatasets = (tx: Tx) => tx.k.selectFrom("datasets").selectAll();

/** Finds the dataset that is shared with this token, in any workspace. */
export const findSharedDataset = (tx: Tx, share_token: string): Promise<DatasetRow | undefined> =>
  tx.first(selectDatasets(tx).where("share_token", "=", share_token));

export const datasetsByNo = (tx: Tx, numbers: number[]): Promise<DatasetRow[]> =>
  byIds(numbers, (batch) => tx.all(selectDatasets(tx).where("dataset_no", "in", batch)));

/** Locks the dataset until the transaction ends. Required to assign example indexes and test run numbers. */
export const lockDataset = (tx: Tx, dataset_no: number): Promise<DatasetRow | undefined> =>
  tx.first(tx.dialect.forUpdate(selectDatasets(tx).where("dataset_no", "=", dataset_no)));

/** Sorts null below every value. */
export const nullsLow = (descending: boolean) => (order: OrderByItemBuilder) =>
  descending ? order.desc().nullsLast() : order.asc().nullsFirst();

/** @param nulls the position of datasets without a value of `sort_by`: `low` sorts null below every value */
export function listDatasets(
  tx: Tx,
  tenant_id: string,
  filter: DatasetQuery,
  nulls: "low" | "last" = "low",
): Promise<DatasetWithCounts[]> {
  const { id, data_type, name, name_contains, metadata, sort_by, sort_by_desc, limit, offset } = filter;
  let query = withCounts(tx, tenant_id);
  if (id) query = query.where("dataset_id", "in", id);
  if (data_type) query = query.where("data_type", "in", data_type);
  if (name !== undefined) query = query.where("name", "=", name);
  if (name_contains) query = query.where(tx.dialect.containsText(sql.ref("name"), name_contains));
  if (metadata) query = query.where(sql<boolean>`json_contains(coalesce(metadata, '{}'), ${JSON.stringify(metadata)})`);
  const by = sql.ref(sort_by === "last_session_start_time" ? "last_session_start_us" : sort_by);
  const direction = sort_by_desc ? "desc" : "asc";
  const order = nulls === "low" ? nullsLow(sort_by_desc) : (o: OrderByItemBuilder) => o[direction]().nullsLast();
  return tx.all(query.orderBy(by, order).orderBy("dataset_no", "desc").limit(limit).offset(offset)) as Promise<
    DatasetWithCounts[]
  >;
}

type DatasetChanges = { [Name in keyof DatasetRow]?: DatasetRow[Name] | undefined };

/** Updates a dataset and its modification time. Undefined fields are not changed. */
export const updateDataset = (tx: Tx, dataset_no: number, changes: DatasetChanges): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("datasets")
      .set({ ...changes, modified_at: nowMs })
      .where("dataset_no", "=", dataset_no),
  );

/** Clears the baseline of the datasets whose baseline is the experiment. Called before the experiment is deleted. */
export const clearBaseline = (tx: Tx, tenant_id: string, experiment_id: string): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("datasets")
      .set({ baseline_experiment_id: null })
      .where("tenant_id", "=", tenant_id)
      .where("baseline_experiment_id", "=", experiment_id),
  );

/** Deletes a dataset and its examples. The caller deletes its experiments first. */
export async function deleteDataset(tx: Tx, dataset_no: number): Promise<void> {
  const tables = [
    "comparative_experiments",
    "dataset_tags",
    "example_attachments",
    "example_versions",
    "examples",
  ] as const;
  for (const table of [...tables, "datasets"] as const)
    await tx.run(tx.k.deleteFrom(table).where("dataset_no", "=", dataset_no));
}
