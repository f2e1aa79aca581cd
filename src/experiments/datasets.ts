import { randomUUID } from "node:crypto";
import type { Caller } from "../platform/contract/caller.ts";
import { writeUnique } from "../platform/database/write-unique.ts";
import { ApiError } from "../platform/errors.ts";
import { newId } from "../platform/lib/ids.ts";
import { isoOfMilliseconds } from "../platform/lib/times.ts";
import type { ExperimentsContext } from "./context.ts";
import type { Dataset, DatasetCreate, DatasetQuery, DatasetUpdate } from "./contract/datasets.ts";
import { getDataset, getExperimentsOf } from "./lookup.ts";
import {
  type DatasetOrder,
  deleteDataset,
  findDatasetByName,
  insertDataset,
  listDatasets,
  updateDataset,
} from "./storage/datasets.ts";
import { versionTimes } from "./storage/examples.ts";
import { deleteExperiment, experimentsOfDataset } from "./storage/experiments.ts";
import { datasetOf, textOf } from "./wire.ts";

type Paging = { limit: number; offset: number };

export class Datasets {
  readonly #context: ExperimentsContext;

  constructor(context: ExperimentsContext) {
    this.#context = context;
  }

  async list(caller: Caller, query: DatasetQuery): Promise<Dataset[]> {
    const by: DatasetOrder = query.sort_by === "last_session_start_time" ? "last_session_start_us" : query.sort_by;
    const page = { by, descending: query.sort_by_desc, limit: query.limit, offset: query.offset };
    return (await listDatasets(this.#context.database.read, caller.tenant_id, query, page)).map(datasetOf);
  }

  async read(caller: Caller, dataset_id: string): Promise<Dataset> {
    return datasetOf(await getDataset(this.#context.database.read, caller, dataset_id));
  }

  async create(caller: Caller, body: DatasetCreate): Promise<Dataset> {
    const made = await this.#context.database.write((tx) =>
      insertDataset(tx, {
        tenant_id: caller.tenant_id,
        dataset_id: body.id ?? newId(),
        name: body.name,
        description: body.description ?? null,
        data_type: body.data_type,
        externally_managed: 0,
        inputs_schema: textOf(body.inputs_schema_definition),
        outputs_schema: textOf(body.outputs_schema_definition),
        transformations: textOf(body.transformations),
        metadata: textOf(body.metadata ?? body.extra?.metadata),
      }),
    );
    if (!made) throw new ApiError("dataset_exists", { what: `its id or the name "${body.name}"` });
    return datasetOf(made);
  }

  async update(caller: Caller, dataset_id: string, body: DatasetUpdate): Promise<Dataset> {
    return writeUnique(this.#context.database, async (tx) => {
      const { dataset_no } = await getDataset(tx, caller, dataset_id);
      const other = body.name === undefined ? undefined : await findDatasetByName(tx, caller.tenant_id, body.name);
      if (other && other.dataset_no !== dataset_no)
        throw new ApiError("dataset_exists", { what: `the name "${body.name}"` });
      const { baseline_experiment_id } = body;
      if (typeof baseline_experiment_id === "string")
        await getExperimentsOf(tx, caller, dataset_no, [baseline_experiment_id]);
      await updateDataset(
        tx,
        dataset_no,
        given({
          name: body.name,
          description: body.description,
          inputs_schema: changed(body.inputs_schema_definition),
          outputs_schema: changed(body.outputs_schema_definition),
          transformations: changed(body.transformations),
          metadata: changed(body.metadata),
          baseline_experiment_id,
        }),
      );
      return datasetOf(await getDataset(tx, caller, dataset_id));
    });
  }

  async delete(caller: Caller, dataset_id: string): Promise<void> {
    await this.#context.database.write(async (tx) => {
      const { dataset_no } = await getDataset(tx, caller, dataset_id);
      for (const { experiment_no } of await experimentsOfDataset(tx, dataset_no))
        await deleteExperiment(tx, experiment_no);
      await deleteDataset(tx, dataset_no);
    });
  }

  /** The newest one is tagged `latest`. */
  async versions(caller: Caller, dataset_id: string, { limit, offset }: Paging) {
    const { read } = this.#context.database;
    const { dataset_no } = await getDataset(read, caller, dataset_id);
    const times = await versionTimes(read, dataset_no, limit, offset);
    return times.map(({ at }, index) => ({
      tags: index + offset === 0 ? ["latest"] : null,
      as_of: isoOfMilliseconds(at),
    }));
  }

  async readShare(caller: Caller, dataset_id: string) {
    const { share_token } = await getDataset(this.#context.database.read, caller, dataset_id);
    return share_token === null ? null : { dataset_id, share_token };
  }

  async share(caller: Caller, dataset_id: string, shares_experiments: boolean) {
    return this.#context.database.write(async (tx) => {
      const { dataset_no, share_token } = await getDataset(tx, caller, dataset_id);
      // It opens the dataset to whoever has it, so it is not one of the ids that follow from the time.
      const token = share_token ?? randomUUID();
      await updateDataset(tx, dataset_no, { share_token: token, shares_experiments: shares_experiments ? 1 : 0 });
      return { dataset_id, share_token: token };
    });
  }

  async unshare(caller: Caller, dataset_id: string): Promise<void> {
    await this.#context.database.write(async (tx) => {
      const { dataset_no } = await getDataset(tx, caller, dataset_id);
      await updateDataset(tx, dataset_no, { share_token: null, shares_experiments: 0 });
    });
  }
}

/** JSON of a field that was given, null when it was taken away. */
const changed = (value: unknown): string | null | undefined => (value === undefined ? undefined : textOf(value));

/** Without the fields that were not given. */
const given = <T extends object>(changes: T): { [K in keyof T]?: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined)) as never;
