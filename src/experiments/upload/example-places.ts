import type { Tx } from "../../platform/database/database.ts";
import { idOfName } from "../../platform/lib/ids.ts";
import { examplesBy, insertExamples, setExampleVersion, takenExampleIds } from "../storage/examples.ts";
import type { DatasetRow, ExampleRow, ExampleVersionRow } from "../storage/schema.ts";
import type { StagedRow } from "./staged-row.ts";

/** Where a row's run belongs. */
export interface RowPlace {
  ord: number;
  version: number;
  repetition: number;
}

/**
 * Finds the example of each row of an upload in its dataset, or makes it. The same row_id is the same example; with other
 * inputs or expected outputs than before it gets a new version, and what ran before keeps the old one. The dataset is held
 * by the transaction.
 */
export class ExamplePlaces {
  /** The place that the next new example gets. */
  next: number;
  /** Examples that the dataset did not have, or no longer. */
  added = 0;

  readonly #now: number;
  readonly #tx: Tx;
  readonly #dataset: DatasetRow;
  /** By row_id, of the rows so far. */
  readonly #known = new Map<string, { ord: number; version: number; runs: number }>();

  constructor(tx: Tx, dataset: DatasetRow, now: number) {
    this.#tx = tx;
    this.#dataset = dataset;
    this.#now = now;
    this.next = dataset.next_ord;
  }

  async of(rows: StagedRow[]): Promise<RowPlace[]> {
    await this.#learn(rows.filter(({ row_id }) => !this.#known.has(row_id)));
    return rows.map(({ row_id }) => {
      const known = this.#known.get(row_id) as { ord: number; version: number; runs: number };
      return { ord: known.ord, version: known.version, repetition: known.runs++ };
    });
  }

  async #learn(rows: StagedRow[]): Promise<void> {
    const { tenant_id } = this.#dataset;
    const firsts = new Map(rows.map((row) => [row.row_id, row]).reverse() as [string, StagedRow][]);
    const ids = [...firsts.keys()].reverse();
    if (ids.length === 0) return;
    const stored = await this.#stored(ids);
    const taken = await takenExampleIds(
      this.#tx,
      tenant_id,
      ids.filter((id) => !stored.has(id)),
    );
    const examples: ExampleRow[] = [];
    const versions: ExampleVersionRow[] = [];
    for (const row_id of ids) {
      const row = firsts.get(row_id) as StagedRow;
      const old = stored.get(row_id);
      const example = old ? await this.#renewed(old, row) : this.#made(row, taken);
      if (!old) examples.push(example);
      if (example.version !== old?.version) versions.push(versionOf(example, row));
      this.#known.set(row_id, { ord: example.ord, version: example.version, runs: 0 });
    }
    await insertExamples(this.#tx, examples, versions);
  }

  /**
   * By row_id. Who reads examples and uploads results for them knows them by their own ids, which are other ones where two
   * datasets have the same row_id.
   */
  async #stored(ids: string[]): Promise<Map<string, ExampleRow>> {
    const { dataset_no } = this.#dataset;
    const byRowId = await examplesBy(this.#tx, "row_id", dataset_no, ids);
    const stored = new Map(byRowId.map((example) => [example.row_id, example]));
    const others = ids.filter((id) => !stored.has(id));
    for (const example of await examplesBy(this.#tx, "example_id", dataset_no, others))
      stored.set(example.example_id, example);
    return stored;
  }

  #made({ row_id, digest }: StagedRow, taken: ReadonlySet<string>): ExampleRow {
    const { dataset_no, dataset_id, tenant_id } = this.#dataset;
    this.added++;
    return {
      dataset_no,
      ord: this.next++,
      tenant_id,
      // The same row_id in two datasets is two examples.
      example_id: taken.has(row_id) ? idOfName(row_id, dataset_id) : row_id,
      row_id,
      version: 1,
      digest,
      source_run_id: null,
      deleted: 0,
      created_at: this.#now,
      modified_at: this.#now,
    };
  }

  async #renewed(old: ExampleRow, { digest }: StagedRow): Promise<ExampleRow> {
    if (old.digest === digest && old.deleted === 0) return old;
    if (old.deleted === 1) this.added++;
    const example = { ...old, version: old.version + 1, digest, deleted: 0, modified_at: this.#now };
    const { dataset_no, ord, version, deleted, modified_at } = example;
    await setExampleVersion(this.#tx, { dataset_no, ord, version, digest, deleted, modified_at });
    return example;
  }
}

const versionOf = ({ dataset_no, ord, version, modified_at }: ExampleRow, row: StagedRow): ExampleVersionRow => ({
  dataset_no,
  ord,
  version,
  inputs: row.inputs,
  outputs: row.expected,
  metadata: null,
  splits: "[]",
  deleted: 0,
  created_at: modified_at,
});
