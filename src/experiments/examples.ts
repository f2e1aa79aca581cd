import type { Caller } from "../platform/contract/caller.ts";
import { readNow, type Tx } from "../platform/database/database.ts";
import { writeUnique } from "../platform/database/write-unique.ts";
import { ApiError } from "../platform/errors.ts";
import { newId } from "../platform/lib/ids.ts";
import type { JsonObject } from "../platform/lib/json/json.ts";
import type { ExperimentsContext } from "./context.ts";
import {
  type Example,
  type ExampleCount,
  type ExampleCreate,
  type ExampleQuery,
  type ExampleUpdate,
  exampleSplits,
} from "./contract/examples.ts";
import { readExampleFilters } from "./filter/read-filters.ts";
import { datasetIds, getDataset } from "./lookup.ts";
import { datasetsByNo, lockDataset, updateDataset } from "./storage/datasets.ts";
import {
  countExamples,
  type ExampleFilter,
  examplesAt,
  findExample,
  findVersion,
  insertExamples,
  listExamples,
  setExampleVersion,
  takenExampleIds,
} from "./storage/examples.ts";
import type { ExampleRow, ExampleVersionRow } from "./storage/schema.ts";
import { digestOf } from "./upload/staged-row.ts";
import { exampleOf, parsed, textOf } from "./wire.ts";

/** A change of one example, named by its id. */
export type ExampleChange = ExampleUpdate & { id: string };

export class Examples {
  readonly #context: ExperimentsContext;

  constructor(context: ExperimentsContext) {
    this.#context = context;
  }

  async list(caller: Caller, query: ExampleQuery): Promise<Partial<Example>[]> {
    const { read } = this.#context.database;
    const { order, limit, offset } = query;
    // What changed last is first; ids and chance have no last.
    const descending = query.descending ?? (order === "recent" || order === "recently_created");
    const page = { order, descending, seed: query.random_seed ?? 0, limit, offset };
    const rows = await listExamples(read, caller.tenant_id, await this.#filter(caller, query), page);
    const ids = await datasetIds(
      read,
      rows.map((row) => row.dataset_no),
    );
    return rows.map((row) => selected(exampleOf(row, ids.get(row.dataset_no) as string), query.select));
  }

  async count(caller: Caller, query: ExampleCount): Promise<number> {
    return countExamples(this.#context.database.read, caller.tenant_id, await this.#filter(caller, query));
  }

  async read(caller: Caller, example_id: string, as_of: number | "latest"): Promise<Example> {
    const { read } = this.#context.database;
    const filter = { id: [example_id], as_of: as_of === "latest" ? undefined : Math.floor(as_of / 1000) };
    const [row] = await listExamples(read, caller.tenant_id, filter, ONE);
    if (!row) throw new ApiError("example_not_found");
    const ids = await datasetIds(read, [row.dataset_no]);
    return exampleOf(row, ids.get(row.dataset_no) as string);
  }

  /** Adds examples to a dataset: all, or none. */
  async create(caller: Caller, dataset_id: string, bodies: ExampleCreate[]): Promise<Example[]> {
    return writeUnique(this.#context.database, async (tx) => {
      const dataset = await getDataset(tx, caller, dataset_id);
      if (dataset.externally_managed === 1) throw new ApiError("dataset_is_managed", { name: dataset.name });
      const locked = await lockDataset(tx, dataset.dataset_no);
      if (!locked) throw new ApiError("dataset_not_found");
      await refuseTaken(tx, caller, bodies);
      // One moment for all of them: they came together, and are listed in the order in which they came.
      const now = await readNow(tx);
      const made = bodies.map((body, index) => newExample(locked, locked.next_ord + index, body, now));
      await insertExamples(
        tx,
        made.map(({ example }) => example),
        made.map(({ version }) => version),
      );
      await updateDataset(tx, locked.dataset_no, {
        next_ord: locked.next_ord + bodies.length,
        example_count: locked.example_count + bodies.length,
      });
      const rows = await examplesAt(
        tx,
        locked.dataset_no,
        made.map(({ example }) => example.ord),
      );
      return rows.sort((a, b) => a.ord - b.ord).map((row) => exampleOf(row, dataset_id));
    });
  }

  /** Changes examples: all, or none. With `dataset_id` they must belong to it. */
  async update(caller: Caller, changes: ExampleChange[], dataset_id?: string): Promise<Example[]> {
    return this.#context.database.write(async (tx) => {
      const changed: Example[] = [];
      for (const { id, ...change } of changes) {
        const example = await this.#locked(tx, caller, id);
        const ids = await datasetIds(tx, [example.dataset_no]);
        const of = ids.get(example.dataset_no) as string;
        if (dataset_id !== undefined && of !== dataset_id) throw new ApiError("example_not_found");
        await putVersion(tx, example, change);
        const [row] = await examplesAt(tx, example.dataset_no, [example.ord]);
        if (row) changed.push(exampleOf(row, of));
        await updateDataset(tx, example.dataset_no, {});
      }
      return changed;
    });
  }

  async delete(caller: Caller, ids: readonly string[]): Promise<void> {
    await this.#context.database.write(async (tx) => {
      for (const id of new Set(ids)) {
        const example = await this.#locked(tx, caller, id);
        await putVersion(tx, example, {}, true);
        const [dataset] = await datasetsByNo(tx, [example.dataset_no]);
        if (dataset) await updateDataset(tx, dataset.dataset_no, { example_count: dataset.example_count - 1 });
      }
    });
  }

  /** An example that is there, its dataset held. */
  async #locked(tx: Tx, { tenant_id }: Caller, example_id: string): Promise<ExampleRow> {
    const found = await findExample(tx, tenant_id, example_id);
    if (found) await lockDataset(tx, found.dataset_no);
    // Read again: it may have changed until the dataset was held.
    const example = await findExample(tx, tenant_id, example_id);
    if (!example || example.deleted === 1) throw new ApiError("example_not_found");
    return example;
  }

  async #filter(caller: Caller, query: ExampleCount): Promise<ExampleFilter> {
    const { dataset, as_of } = query;
    const { read } = this.#context.database;
    return {
      id: query.id,
      metadata: query.metadata,
      splits: query.splits,
      text: query.full_text_contains,
      filters: readExampleFilters(query.filter),
      as_of: as_of === "latest" ? undefined : Math.floor(as_of / 1000),
      dataset_no: dataset === undefined ? undefined : (await getDataset(read, caller, dataset)).dataset_no,
    };
  }
}

const ONE = { order: "id", descending: false, seed: 0, limit: 1, offset: 0 } as const;

/** These are in every answer, whatever was selected: the clients rely on them. */
const ALWAYS = new Set(["id", "dataset_id", "inputs", "name", "created_at", "modified_at"]);

function selected(example: Example, fields: readonly string[] | undefined): Partial<Example> {
  if (!fields) return example;
  return Object.fromEntries(Object.entries(example).filter(([name]) => ALWAYS.has(name) || fields.includes(name)));
}

async function refuseTaken(tx: Tx, { tenant_id }: Caller, bodies: ExampleCreate[]): Promise<void> {
  const ids = bodies.flatMap(({ id }) => id ?? []);
  const twice = ids.find((id, index) => ids.indexOf(id) < index);
  const [taken] = twice ? [twice] : await takenExampleIds(tx, tenant_id, ids);
  if (taken) throw new ApiError("example_exists", { example_id: taken });
}

function newExample(
  { dataset_no, tenant_id }: { dataset_no: number; tenant_id: string },
  ord: number,
  body: ExampleCreate,
  now: number,
) {
  const id = body.id ?? newId();
  const example: ExampleRow = {
    dataset_no,
    ord,
    tenant_id,
    example_id: id,
    row_id: id,
    version: 1,
    digest: digestOf(body.inputs, body.outputs ?? null),
    source_run_id: body.source_run_id ?? null,
    deleted: 0,
    // As the caller says; the dataset changes now, whatever that is.
    created_at: body.created_at === undefined ? now : Math.floor(body.created_at / 1000),
    modified_at: now,
  };
  const { metadata, split } = withSplitApart(body);
  const version: ExampleVersionRow = {
    dataset_no,
    ord,
    version: 1,
    inputs: JSON.stringify(body.inputs),
    outputs: textOf(body.outputs),
    metadata: textOf(metadata),
    splits: JSON.stringify(split ?? []),
    deleted: 0,
    created_at: now,
  };
  return { example, version };
}

/** Gives an example a new version: what changed, and all else as it was. */
async function putVersion(tx: Tx, example: ExampleRow, change: ExampleUpdate, isGone = false): Promise<void> {
  const before = (await findVersion(tx, example)) as ExampleVersionRow;
  const { metadata, split } = withSplitApart(change);
  const inputs = change.inputs ?? (JSON.parse(before.inputs) as JsonObject);
  const outputs = change.outputs === undefined ? parsed<JsonObject>(before.outputs) : change.outputs;
  const version = example.version + 1;
  // After the version before, also within one millisecond: as_of tells them apart by their times.
  const modified_at = Math.max(await readNow(tx), before.created_at + 1);
  const deleted = isGone ? 1 : 0;
  await insertExamples(
    tx,
    [],
    [
      {
        ...before,
        version,
        inputs: JSON.stringify(inputs),
        outputs: textOf(outputs),
        metadata: metadata === undefined ? before.metadata : textOf(metadata),
        splits: split === undefined ? before.splits : JSON.stringify(split),
        deleted,
        created_at: modified_at,
      },
    ],
  );
  const { dataset_no, ord } = example;
  await setExampleVersion(tx, { dataset_no, ord, version, digest: digestOf(inputs, outputs), deleted, modified_at });
}

/** Splits are shown within the metadata and kept beside it: what was read may be written back. `split` itself comes first. */
function withSplitApart({ metadata, split }: ExampleUpdate): ExampleUpdate {
  if (!metadata || !("dataset_split" in metadata)) return { metadata, split };
  const { dataset_split, ...others } = metadata;
  const shown = exampleSplits.safeParse(dataset_split);
  return { metadata: others, split: split ?? (shown.success ? shown.data : undefined) };
}
