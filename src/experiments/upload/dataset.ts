import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { UploadHead } from "../contract/upload.ts";
import { findDataset, findDatasetByName, insertDataset, lockDataset } from "../storage/datasets.ts";
import type { DatasetRow } from "../storage/schema.ts";

/**
 * The dataset that an upload belongs to, held until the transaction ends; it is made where there is none. Its identity is
 * the id when one is given, else the name; an id makes a name and a name makes an id.
 *
 * @throws ApiError when id and name are those of two datasets, or the dataset was not made by an upload
 */
export async function datasetFor(tx: Tx, tenant_id: string, head: UploadHead): Promise<DatasetRow> {
  const { dataset_id, dataset_name } = head;
  const found = dataset_id
    ? await findDataset(tx, tenant_id, dataset_id)
    : await findDatasetByName(tx, tenant_id, dataset_name as string);
  if (!found) return makeDataset(tx, tenant_id, head);
  if (dataset_name !== undefined && dataset_name !== found.name)
    throw new ApiError("dataset_mismatch", { dataset_id: found.dataset_id, name: found.name, dataset_name });
  if (found.externally_managed !== 1) throw new ApiError("dataset_not_managed", { name: found.name });
  return (await lockDataset(tx, found.dataset_no)) ?? datasetFor(tx, tenant_id, head);
}

async function makeDataset(tx: Tx, tenant_id: string, head: UploadHead): Promise<DatasetRow> {
  const dataset_id = head.dataset_id ?? newId();
  const name = head.dataset_name ?? `dataset-${dataset_id}`;
  const made = await insertDataset(tx, {
    tenant_id,
    dataset_id,
    name,
    description: head.dataset_description ?? null,
    data_type: "kv",
    externally_managed: 1,
    inputs_schema: null,
    outputs_schema: null,
    transformations: null,
    metadata: null,
  });
  if (made) return made;
  // Somebody made it meanwhile, or the name is that of a dataset with another id.
  const other = await findDatasetByName(tx, tenant_id, name);
  if (other && head.dataset_id !== undefined && other.dataset_id !== head.dataset_id)
    throw new ApiError("dataset_mismatch", { dataset_id: other.dataset_id, name, dataset_name: name });
  return datasetFor(tx, tenant_id, head);
}
