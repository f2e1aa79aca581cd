import type { Caller } from "../../platform/contract/caller.ts";
import { readNow, type Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import type { ExperimentsContext } from "../context.ts";
import type { ComparativeCreate, ComparativeExperiment, ComparativeQuery } from "../contract/comparison.ts";
import { getDataset, getExperiment, getExperimentsOf } from "../lookup.ts";
import { deleteComparative, insertComparative, listComparative } from "../storage/comparative.ts";
import { datasetsByNo } from "../storage/datasets.ts";
import { experimentsById } from "../storage/experiments.ts";
import type { ComparativeExperimentRow } from "../storage/schema.ts";
import { parsed, textOf } from "../wire.ts";

/** Comparisons that somebody keeps under a name. */
export class ComparativeExperiments {
  readonly #context: ExperimentsContext;

  constructor(context: ExperimentsContext) {
    this.#context = context;
  }

  async create(caller: Caller, body: ComparativeCreate): Promise<ComparativeExperiment> {
    return this.#context.database.write(async (tx) => {
      const dataset_no = await datasetOf(tx, caller, body);
      await getExperimentsOf(tx, caller, dataset_no, body.experiment_ids);
      const now = await readNow(tx);
      const at = (us: number | undefined) => (us === undefined ? now : Math.floor(us / 1000));
      const made = await insertComparative(tx, {
        comparative_experiment_id: body.id ?? newId(),
        tenant_id: caller.tenant_id,
        dataset_no,
        name: body.name ?? null,
        description: body.description ?? null,
        extra: textOf(body.extra),
        experiment_ids: JSON.stringify(body.experiment_ids),
        created_at: at(body.created_at),
        modified_at: at(body.modified_at ?? body.created_at),
      });
      if (!made) throw new ApiError("comparative_exists", { id: body.id });
      return onWire(tx, made);
    });
  }

  async list(caller: Caller, dataset_id: string, query: ComparativeQuery): Promise<ComparativeExperiment[]> {
    const { read } = this.#context.database;
    const { dataset_no } = await getDataset(read, caller, dataset_id);
    const rows = await listComparative(read, dataset_no, query, query);
    return Promise.all(rows.map((row) => onWire(read, row)));
  }

  async delete({ tenant_id }: Caller, id: string): Promise<void> {
    const count = await this.#context.database.write((tx) => deleteComparative(tx, tenant_id, id));
    if (count === 0) throw new ApiError("comparative_not_found");
  }
}

/** The dataset that is named, or that of the first experiment. */
async function datasetOf(tx: Tx, caller: Caller, body: ComparativeCreate): Promise<number> {
  if (body.reference_dataset_id) return (await getDataset(tx, caller, body.reference_dataset_id)).dataset_no;
  const [session_id] = body.experiment_ids as [string, ...string[]];
  const { dataset_no } = await getExperiment(tx, caller, session_id);
  if (dataset_no === null) throw new ApiError("session_elsewhere", { session_id });
  return dataset_no;
}

async function onWire(tx: Tx, row: ComparativeExperimentRow): Promise<ComparativeExperiment> {
  const ids = JSON.parse(row.experiment_ids) as string[];
  const found = new Map((await experimentsById(tx, row.tenant_id, ids)).map((one) => [one.experiment_id, one.name]));
  const [dataset] = await datasetsByNo(tx, [row.dataset_no]);
  return {
    id: row.comparative_experiment_id,
    name: row.name,
    description: row.description,
    tenant_id: row.tenant_id,
    created_at: isoOfMilliseconds(row.created_at),
    modified_at: isoOfMilliseconds(row.modified_at),
    reference_dataset_id: dataset?.dataset_id ?? "",
    extra: parsed(row.extra),
    experiments_info: ids.flatMap((id) => (found.has(id) ? [{ id, name: found.get(id) as string }] : [])),
    feedback_stats: null,
  };
}
