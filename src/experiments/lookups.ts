import type { Caller } from "../platform/contract/caller.ts";
import type { Database, Tx } from "../platform/database/database.ts";
import { ApiError } from "../platform/errors.ts";
import { refreshDirty } from "./sessions/refresh-stats.ts";
import { type DatasetWithCounts, datasetsByNo, findDataset } from "./storage/datasets.ts";
import { experimentsById, findExperiment } from "./storage/experiments.ts";
import type { ExperimentRow } from "./storage/schema.ts";

/** @throws ApiError when the workspace of the caller has no dataset with this id */
export async function getDataset(tx: Tx, { tenant_id }: Caller, dataset_id: string): Promise<DatasetWithCounts> {
  const dataset = await findDataset(tx, tenant_id, dataset_id);
  if (!dataset) throw new ApiError("dataset_not_found");
  return dataset;
}

/** @throws ApiError when the workspace of the caller has no experiment with this id */
export async function getExperiment(tx: Tx, { tenant_id }: Caller, experiment_id: string): Promise<ExperimentRow> {
  const experiment = await findExperiment(tx, tenant_id, experiment_id);
  if (!experiment) throw new ApiError("session_not_found");
  return experiment;
}

/**
 * Experiments of one dataset, in the order of the ids and without duplicates.
 *
 * @throws ApiError when an experiment does not exist or belongs to another dataset
 */
export async function getExperiments(
  tx: Tx,
  { tenant_id }: Caller,
  dataset_no: number,
  ids: readonly string[],
): Promise<ExperimentRow[]> {
  const found = await experimentsById(tx, tenant_id, [...new Set(ids)]);
  const byId = new Map(found.map((experiment) => [experiment.experiment_id, experiment]));
  return [...new Set(ids)].map((session_id) => {
    const experiment = byId.get(session_id);
    if (!experiment) throw new ApiError("session_not_found");
    if (experiment.dataset_no !== dataset_no) throw new ApiError("session_elsewhere", { session_id });
    return experiment;
  });
}

/** {@link getExperiments} with current statistics and score vectors. */
export async function readExperiments(
  database: Database,
  caller: Caller,
  dataset_no: number,
  ids: readonly string[],
): Promise<ExperimentRow[]> {
  await refreshDirty(database, caller, { dataset_no: [dataset_no], id: [...ids] });
  return getExperiments(database.read, caller, dataset_no, ids);
}

/** Reads the ids of datasets, keyed by `dataset_no`. */
export async function datasetIds(tx: Tx, numbers: readonly (number | null)[]): Promise<Map<number | null, string>> {
  const unique = [...new Set(numbers)].filter((no) => no !== null);
  return new Map((await datasetsByNo(tx, unique)).map((dataset) => [dataset.dataset_no, dataset.dataset_id]));
}
