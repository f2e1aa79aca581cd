import { randomUUID } from "node:crypto";
import type { Caller } from "../../platform/contract/caller.ts";
import { type Database, type Tx, writeUnique } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { Dataset, DatasetCreate, DatasetQuery, DatasetUpdate } from "../contract/datasets/datasets.ts";
import type { Example } from "../contract/datasets/examples.ts";
import type { SharedSessionQuery } from "../contract/datasets/shared-datasets.ts";
import type { Session } from "../contract/sessions.ts";
import type { DatasetQueryV2 } from "../contract/v2/routes.ts";
import { cursorOfOffset, getDataset, getExperiments, offsetOfCursor } from "../lookups.ts";
import { toDataset, toExample, toJson, toSession } from "../serialization/records.ts";
import { refreshDirty } from "../sessions/refresh-stats.ts";
import {
  deleteDataset,
  findDataset,
  findDatasetByName,
  findSharedDataset,
  insertDataset,
  listDatasets,
  lockDataset,
  updateDataset,
} from "../storage/datasets.ts";
import { listExamples } from "../storage/examples.ts";
import { deleteExperiment, experimentsOfDataset, listExperiments, lockExperiments } from "../storage/experiments.ts";
import type { DatasetRow } from "../storage/schema.ts";
import { assertSchemas } from "./dataset-schemas.ts";

type NewDataset = Omit<DatasetCreate, "transformations" | "tag_value_ids">;

export const datasetOperations = (database: Database) => ({
  async list(caller: Caller, query: DatasetQuery): Promise<Dataset[]> {
    return (await listDatasets(database.read, caller.tenant_id, query)).map(toDataset);
  },

  async listV2(caller: Caller, { cursor, page_size, sort_order, exclude, ...query }: DatasetQueryV2) {
    const offset = cursor === undefined ? 0 : offsetOfCursor(cursor);
    const page = { ...query, sort_by_desc: sort_order === "desc", limit: page_size + 1, offset };
    const rows = await listDatasets(database.read, caller.tenant_id, page, "last");
    const items = rows.slice(0, page_size).map((row) => {
      const dataset = toDataset(row);
      return exclude?.includes("example_count") ? { ...dataset, example_count: null } : dataset;
    });
    return { items, next_cursor: rows.length > page_size ? cursorOfOffset(offset + page_size) : null };
  },

  async read(caller: Caller, dataset_id: string): Promise<Dataset> {
    return toDataset(await getDataset(database.read, caller, dataset_id));
  },

  async create(caller: Caller, body: DatasetCreate): Promise<Dataset> {
    assertSchemas(body);
    return toDataset(await database.write((tx) => addDataset(tx, caller, body)));
  },

  async update(caller: Caller, dataset_id: string, body: DatasetUpdate): Promise<Dataset> {
    assertSchemas(body);
    return writeUnique(database, async (tx) => {
      const { dataset_no, externally_managed, name } = await getDataset(tx, caller, dataset_id);
      if (externally_managed === 1 && (body.inputs_schema_definition || body.outputs_schema_definition))
        throw new ApiError("dataset_without_schemas", { name });
      const other = body.name === undefined ? undefined : await findDatasetByName(tx, caller.tenant_id, body.name);
      if (other && other.dataset_no !== dataset_no)
        throw new ApiError("dataset_exists", { field: `the name "${body.name}"` });
      const { baseline_experiment_id } = body;
      if (typeof baseline_experiment_id === "string")
        await getExperiments(tx, caller, dataset_no, [baseline_experiment_id]);
      await updateDataset(tx, dataset_no, {
        name: body.name,
        description: body.description,
        inputs_schema: changedJson(body.inputs_schema_definition),
        outputs_schema: changedJson(body.outputs_schema_definition),
        transformations: body.transformations === undefined ? undefined : null,
        metadata: changedJson(body.metadata),
        baseline_experiment_id,
      });
      return toDataset(await getDataset(tx, caller, dataset_id));
    });
  },

  async delete(caller: Caller, dataset_id: string): Promise<void> {
    await database.write(async (tx) => {
      const { dataset_no } = await getDataset(tx, caller, dataset_id);
      // Examples and runs that other transactions store later would belong to nothing.
      await lockDataset(tx, dataset_no);
      const numbers = (await experimentsOfDataset(tx, dataset_no)).map(({ experiment_no }) => experiment_no);
      await lockExperiments(tx, numbers);
      for (const experiment_no of numbers) await deleteExperiment(tx, experiment_no);
      await deleteDataset(tx, dataset_no);
    });
  },

  async readShare(caller: Caller, dataset_id: string) {
    const { share_token } = await getDataset(database.read, caller, dataset_id);
    return share_token === null ? null : { dataset_id, share_token };
  },

  async share(caller: Caller, dataset_id: string, shares_experiments: boolean) {
    return database.write(async (tx) => {
      const { dataset_no, share_token } = await lock(tx, caller, dataset_id);
      // The token grants access to the dataset: it must be random, not a time-ordered id.
      const token = share_token ?? randomUUID();
      await updateDataset(tx, dataset_no, { share_token: token, shares_experiments: shares_experiments ? 1 : 0 });
      return { dataset_id, share_token: token };
    });
  },

  async unshare(caller: Caller, dataset_id: string): Promise<void> {
    await database.write(async (tx) => {
      const { dataset_no } = await lock(tx, caller, dataset_id);
      await updateDataset(tx, dataset_no, { share_token: null, shares_experiments: 0 });
    });
  },
});

async function lock(tx: Tx, caller: Caller, dataset_id: string): Promise<DatasetRow> {
  const locked = await lockDataset(tx, (await getDataset(tx, caller, dataset_id)).dataset_no);
  if (!locked) throw new ApiError("dataset_not_found");
  return locked;
}

/** @throws ApiError when the id or the name is taken */
export async function addDataset(tx: Tx, { tenant_id }: Caller, body: NewDataset): Promise<DatasetRow> {
  const created = await insertDataset(tx, {
    tenant_id,
    dataset_id: body.id ?? newId(),
    name: body.name,
    description: body.description ?? null,
    data_type: body.data_type,
    externally_managed: 0,
    inputs_schema: toJson(body.inputs_schema_definition),
    outputs_schema: toJson(body.outputs_schema_definition),
    transformations: null,
    metadata: toJson(body.metadata ?? body.extra?.metadata),
  });
  if (created) return created;
  throw new ApiError("dataset_exists", { field: `the ID or the name "${body.name}"` });
}

/** Undefined keeps the value, null removes it. */
const changedJson = (value: unknown): string | null | undefined => (value === undefined ? undefined : toJson(value));

/** Operations that read a shared dataset. The share token replaces the API key. */
export const sharedDatasetOperations = (database: Database) => ({
  async read(token: string): Promise<Dataset> {
    const { tenant_id, dataset_id } = await getSharedDataset(database.read, token);
    const dataset = await findDataset(database.read, tenant_id, dataset_id);
    if (!dataset) throw new ApiError("dataset_not_found");
    return toDataset(dataset);
  },

  async listExamples(
    token: string,
    { id, limit, offset }: { id?: string[] | undefined; limit: number; offset: number },
  ): Promise<Example[]> {
    const { tenant_id, dataset_no, dataset_id } = await getSharedDataset(database.read, token);
    const page = { order: "recent" as const, descending: true, seed: 0, limit, offset };
    const rows = await listExamples(database.read, tenant_id, { dataset_no, id }, page);
    return rows.map((row) => toExample(row, dataset_id));
  },

  /** Returns an empty list if the dataset is shared without its experiments. */
  async listSessions(token: string, query: SharedSessionQuery): Promise<Session[]> {
    const { tenant_id, dataset_no, dataset_id, shares_experiments } = await getSharedDataset(database.read, token);
    if (shares_experiments !== 1) return [];
    await refreshDirty(database, { tenant_id }, { dataset_no: [dataset_no] });
    const order = { order_by: { column: "start_us" }, descending: true } as const;
    const search = { ...query, ...order, dataset_no: [dataset_no] };
    const rows = await listExperiments(database.read, tenant_id, search);
    return rows.map((row) => toSession(row, dataset_id, true));
  },
});

async function getSharedDataset(read: Tx, token: string): Promise<DatasetRow> {
  const dataset = await findSharedDataset(read, token);
  if (!dataset) throw new ApiError("dataset_not_found");
  return dataset;
}
