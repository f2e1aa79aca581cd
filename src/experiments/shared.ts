import { ApiError } from "../platform/errors.ts";
import type { ExperimentsContext } from "./context.ts";
import type { Dataset } from "./contract/datasets.ts";
import type { Example } from "./contract/examples.ts";
import type { Session } from "./contract/sessions.ts";
import type { SharedSessionQuery } from "./contract/shared.ts";
import { findDataset, findSharedDataset } from "./storage/datasets.ts";
import { listExamples } from "./storage/examples.ts";
import { listExperiments } from "./storage/experiments.ts";
import type { DatasetRow } from "./storage/schema.ts";
import { datasetOf, exampleOf, sessionOf } from "./wire.ts";

type Paging = { limit: number; offset: number };

/** What whoever has the token of a dataset may see: it stands in for a key. */
export class SharedDatasets {
  readonly #context: ExperimentsContext;

  constructor(context: ExperimentsContext) {
    this.#context = context;
  }

  async read(token: string): Promise<Dataset> {
    const { tenant_id, dataset_id } = await this.#find(token);
    const dataset = await findDataset(this.#context.database.read, tenant_id, dataset_id);
    if (!dataset) throw new ApiError("dataset_not_found");
    return datasetOf(dataset);
  }

  async listExamples(token: string, { id, limit, offset }: Paging & { id?: string[] | undefined }): Promise<Example[]> {
    const { tenant_id, dataset_no, dataset_id } = await this.#find(token);
    const page = { order: "recent" as const, descending: true, seed: 0, limit, offset };
    const rows = await listExamples(this.#context.database.read, tenant_id, { dataset_no, id }, page);
    return rows.map((row) => exampleOf(row, dataset_id));
  }

  /** None, when the dataset alone is shared. */
  async listSessions(token: string, { limit, offset, ...which }: SharedSessionQuery): Promise<Session[]> {
    const { tenant_id, dataset_no, dataset_id, shares_experiments } = await this.#find(token);
    if (shares_experiments !== 1) return [];
    const page = { by: { column: "start_us" as const }, descending: true, limit, offset };
    const rows = await listExperiments(
      this.#context.database.read,
      tenant_id,
      { ...which, dataset_no: [dataset_no] },
      page,
    );
    return rows.map((row) => sessionOf(row, dataset_id, true));
  }

  async #find(token: string): Promise<DatasetRow> {
    const dataset = await findSharedDataset(this.#context.database.read, token);
    if (!dataset) throw new ApiError("dataset_not_found");
    return dataset;
  }
}
