import type { Tx } from "../../platform/database/database.ts";
import type { ComparativeExperimentRow } from "./schema.ts";

/** Stores a kept comparison. Undefined when its id is taken. */
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
  filter: { id?: string[] | undefined; name?: string | undefined; name_contains?: string | undefined },
  page: { limit: number; offset: number },
): Promise<ComparativeExperimentRow[]> {
  let query = tx.k.selectFrom("comparative_experiments").selectAll().where("dataset_no", "=", dataset_no);
  if (filter.id) query = query.where("comparative_experiment_id", "in", filter.id);
  if (filter.name !== undefined) query = query.where("name", "=", filter.name);
  if (filter.name_contains)
    query = query.where((c) => tx.dialect.containsText(c.ref("name"), filter.name_contains ?? ""));
  return tx.all(
    query.orderBy("created_at", "desc").orderBy("comparative_experiment_id").limit(page.limit).offset(page.offset),
  );
}

export const deleteComparative = (tx: Tx, tenant_id: string, id: string): Promise<number> =>
  tx.run(
    tx.k
      .deleteFrom("comparative_experiments")
      .where("tenant_id", "=", tenant_id)
      .where("comparative_experiment_id", "=", id),
  );
