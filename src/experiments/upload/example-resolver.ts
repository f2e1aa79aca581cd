import type { Tx } from "../../platform/database/database.ts";
import { idOfName } from "../../platform/lib/ids.ts";
import { examplesAt, examplesBy, insertExamples, setExampleVersion, takenExampleIds } from "../storage/examples.ts";
import type { DatasetRow, ExampleRow, ExampleVersionRow } from "../storage/schema.ts";
import type { StagedRow } from "./staging.ts";

interface ResolvedExample {
  example_index: number;
  version: number;
  /** The number of the example's runs in this upload. */
  runs: number;
}

type ResolvedRow = Pick<ExampleVersionRow, "example_index" | "version"> & { repetition: number };

/**
 * Finds or creates the example of each row of an upload. An example whose inputs or expected outputs changed gets a new version;
 * existing runs keep the old version. The transaction holds the lock of the dataset.
 */
export class ExampleResolver {
  next_example_index: number;
  /** The number of examples that were created or restored. */
  added = 0;

  readonly now: number;
  readonly #tx: Tx;
  readonly #dataset: DatasetRow;
  /** By row_id. */
  readonly #resolved = new Map<string, ResolvedExample>();

  constructor(tx: Tx, dataset: DatasetRow, now: number) {
    this.#tx = tx;
    this.#dataset = dataset;
    this.now = now;
    this.next_example_index = dataset.next_example_index;
  }

  async resolve(rows: StagedRow[]): Promise<ResolvedRow[]> {
    await this.#load(rows.filter(({ row_id }) => !this.#resolved.has(row_id)));
    return rows.map(({ row_id }) => {
      const example = this.#resolved.get(row_id) as ResolvedExample;
      return { example_index: example.example_index, version: example.version, repetition: example.runs++ };
    });
  }

  async #load(rows: StagedRow[]): Promise<void> {
    const { tenant_id } = this.#dataset;
    const firstRows = new Map(rows.map((row) => [row.row_id, row]).reverse() as [string, StagedRow][]);
    const ids = [...firstRows.keys()].reverse();
    if (ids.length === 0) return;
    const stored = await this.#findStored(ids);
    const taken = await takenExampleIds(
      this.#tx,
      tenant_id,
      ids.filter((id) => !stored.has(id)),
    );
    const changed = ids.flatMap((id) => {
      const old = stored.get(id);
      return old && old.deleted === 0 && old.digest !== firstRows.get(id)?.digest ? [old.example_index] : [];
    });
    const kept = new Map(
      (await examplesAt(this.#tx, this.#dataset.dataset_no, changed)).map((each) => [each.example_index, each]),
    );
    const examples: ExampleRow[] = [];
    const versions: ExampleVersionRow[] = [];
    for (const row_id of ids) {
      const row = firstRows.get(row_id) as StagedRow;
      const old = stored.get(row_id);
      const example = old ? await this.#updatedExample(old, row) : this.#newExample(row, taken);
      if (!old) examples.push(example);
      if (example.version !== old?.version) versions.push(versionOf(example, row, kept.get(example.example_index)));
      this.#resolved.set(row_id, { example_index: example.example_index, version: example.version, runs: 0 });
    }
    await insertExamples(this.#tx, examples, versions);
  }

  /**
   * The existing examples by row_id. Clients that read examples and upload results for them send the example id, which differs
   * from the row_id when examples of two datasets have the same row_id.
   */
  async #findStored(ids: string[]): Promise<Map<string, ExampleRow>> {
    const { dataset_no } = this.#dataset;
    const byRowId = await examplesBy(this.#tx, "row_id", dataset_no, ids);
    const stored = new Map(byRowId.map((example) => [example.row_id, example]));
    const others = ids.filter((id) => !stored.has(id));
    for (const example of await examplesBy(this.#tx, "example_id", dataset_no, others))
      stored.set(example.example_id, example);
    return stored;
  }

  #newExample({ row_id, digest }: StagedRow, taken: ReadonlySet<string>): ExampleRow {
    const { dataset_no, dataset_id, tenant_id } = this.#dataset;
    this.added++;
    return {
      dataset_no,
      example_index: this.next_example_index++,
      tenant_id,
      // Examples of two datasets may have the same row_id; example ids are unique in the workspace.
      example_id: taken.has(row_id) ? idOfName(row_id, dataset_id) : row_id,
      row_id,
      version: 1,
      digest,
      source_run_id: null,
      deleted: 0,
      created_at: this.now,
      modified_at: this.now,
    };
  }

  async #updatedExample(old: ExampleRow, { digest }: StagedRow): Promise<ExampleRow> {
    if (old.digest === digest && old.deleted === 0) return old;
    if (old.deleted === 1) this.added++;
    const example = { ...old, version: old.version + 1, digest, deleted: 0, modified_at: this.now };
    const { dataset_no, example_index, version, deleted, modified_at } = example;
    await setExampleVersion(this.#tx, { dataset_no, example_index, version, digest, deleted, modified_at });
    return example;
  }
}

/** @param kept the version before, whose metadata and splits an upload does not change */
const versionOf = (
  { dataset_no, example_index, version, modified_at }: ExampleRow,
  row: StagedRow,
  kept: Pick<ExampleVersionRow, "metadata" | "splits"> | undefined,
): ExampleVersionRow => ({
  dataset_no,
  example_index,
  version,
  inputs: row.inputs,
  outputs: row.expected,
  metadata: kept?.metadata ?? null,
  splits: kept?.splits ?? "[]",
  deleted: 0,
  created_at: modified_at,
});
