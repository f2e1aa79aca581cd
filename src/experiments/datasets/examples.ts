import type { Caller } from "../../platform/contract/caller.ts";
import { type Database, readNow, type Tx, writeUnique } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { JsonObject } from "../../platform/lib/json/json.ts";
import {
  type Example,
  type ExampleCount,
  type ExampleCreate,
  type ExampleQuery,
  type ExampleUpdate,
  exampleSplits,
} from "../contract/examples.ts";
import { readExampleFilters } from "../filter/parse.ts";
import { datasetIds, getDataset } from "../lookups.ts";
import { parseJson, selectFields, toExample, toJson } from "../serialization/records.ts";
import { datasetsByNo, lockDataset, updateDataset } from "../storage/datasets.ts";
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
} from "../storage/examples.ts";
import type { ExampleRow, ExampleVersionRow } from "../storage/schema.ts";
import { digestOf } from "../upload/staging.ts";

export type ExampleChange = ExampleUpdate & { id: string };

export const exampleOperations = (database: Database) => ({
  async list(caller: Caller, query: ExampleQuery): Promise<Partial<Example>[]> {
    const { read } = database;
    const { order, limit, offset } = query;
    // Orders by time are descending by default.
    const descending = query.descending ?? (order === "recent" || order === "recently_created");
    const page = { order, descending, seed: query.random_seed ?? 0, limit, offset };
    const rows = await listExamples(read, caller.tenant_id, await toFilter(read, caller, query), page);
    const numbers = rows.map(({ dataset_no }) => dataset_no);
    const ids = await datasetIds(read, numbers);
    return rows.map((row) => selectExampleFields(toExample(row, ids.get(row.dataset_no) as string), query.select));
  },

  async count(caller: Caller, query: ExampleCount): Promise<number> {
    return countExamples(database.read, caller.tenant_id, await toFilter(database.read, caller, query));
  },

  async read(caller: Caller, example_id: string, as_of: number | "latest"): Promise<Example> {
    const { read } = database;
    const filter = { id: [example_id], as_of: toMilliseconds(as_of) };
    const [row] = await listExamples(read, caller.tenant_id, filter, FIRST);
    if (!row) throw new ApiError("example_not_found");
    const ids = await datasetIds(read, [row.dataset_no]);
    return toExample(row, ids.get(row.dataset_no) as string);
  },

  /** Adds all examples to a dataset, or none. */
  async create(caller: Caller, dataset_id: string, bodies: ExampleCreate[]): Promise<Example[]> {
    return writeUnique(database, async (tx) => {
      const dataset = await getDataset(tx, caller, dataset_id);
      if (dataset.externally_managed === 1) throw new ApiError("dataset_is_managed", { name: dataset.name });
      const locked = await lockDataset(tx, dataset.dataset_no);
      if (!locked) throw new ApiError("dataset_not_found");
      await assertUnusedIds(tx, caller, bodies);
      // With one time for all examples, lists sorted by time keep the order of the request.
      const now = await readNow(tx);
      const created = bodies.map((body, index) => newExample(locked, locked.next_example_index + index, body, now));
      const examples = created.map(({ example }) => example);
      const versions = created.map(({ version }) => version);
      await insertExamples(tx, examples, versions);
      await updateDataset(tx, locked.dataset_no, {
        next_example_index: locked.next_example_index + bodies.length,
        example_count: locked.example_count + bodies.length,
      });
      const indexes = examples.map(({ example_index }) => example_index);
      const rows = await examplesAt(tx, locked.dataset_no, indexes);
      return rows.sort((a, b) => a.example_index - b.example_index).map((row) => toExample(row, dataset_id));
    });
  },

  /** Updates all examples, or none. With a `dataset_id`, the examples must belong to this dataset. */
  async update(caller: Caller, changes: ExampleChange[], dataset_id?: string): Promise<Example[]> {
    return database.write(async (tx) => {
      const changed: Example[] = [];
      for (const { id, ...change } of changes) {
        const example = await lockExample(tx, caller, id);
        const ids = await datasetIds(tx, [example.dataset_no]);
        const of = ids.get(example.dataset_no) as string;
        if (dataset_id !== undefined && of !== dataset_id) throw new ApiError("example_not_found");
        await addVersion(tx, example, change);
        const [row] = await examplesAt(tx, example.dataset_no, [example.example_index]);
        if (row) changed.push(toExample(row, of));
        await updateDataset(tx, example.dataset_no, {});
      }
      return changed;
    });
  },

  async delete(caller: Caller, ids: readonly string[]): Promise<void> {
    await database.write(async (tx) => {
      for (const id of new Set(ids)) {
        const example = await lockExample(tx, caller, id);
        await addVersion(tx, example, {}, true);
        const [dataset] = await datasetsByNo(tx, [example.dataset_no]);
        if (dataset) await updateDataset(tx, dataset.dataset_no, { example_count: dataset.example_count - 1 });
      }
    });
  },
});

/** Reads an example that is not deleted and locks its dataset until the transaction ends. */
async function lockExample(tx: Tx, { tenant_id }: Caller, example_id: string): Promise<ExampleRow> {
  const found = await findExample(tx, tenant_id, example_id);
  if (found) await lockDataset(tx, found.dataset_no);
  // Another transaction may have changed it before the lock.
  const example = await findExample(tx, tenant_id, example_id);
  if (!example || example.deleted === 1) throw new ApiError("example_not_found");
  return example;
}

async function toFilter(read: Tx, caller: Caller, query: ExampleCount): Promise<ExampleFilter> {
  const { id, metadata, splits, full_text_contains: text, dataset, as_of } = query;
  return {
    id,
    metadata,
    splits,
    text,
    filters: readExampleFilters(query.filter),
    as_of: toMilliseconds(as_of),
    dataset_no: dataset === undefined ? undefined : (await getDataset(read, caller, dataset)).dataset_no,
  };
}

const toMilliseconds = (as_of: number | "latest") => (as_of === "latest" ? undefined : Math.floor(as_of / 1000));

const FIRST = { order: "id", descending: false, seed: 0, limit: 1, offset: 0 } as const;

/** The official clients require these fields. */
const REQUIRED_FIELDS = new Set(["id", "dataset_id", "inputs", "name", "created_at", "modified_at"]);

function selectExampleFields(example: Example, fields: readonly string[] | undefined): Partial<Example> {
  if (!fields) return example;
  return selectFields(example, (name) => REQUIRED_FIELDS.has(name) || fields.includes(name));
}

async function assertUnusedIds(tx: Tx, { tenant_id }: Caller, bodies: ExampleCreate[]): Promise<void> {
  const ids = bodies.flatMap(({ id }) => id ?? []);
  const duplicate = ids.find((id, index) => ids.indexOf(id) < index);
  const [taken] = duplicate ? [duplicate] : await takenExampleIds(tx, tenant_id, ids);
  if (taken) throw new ApiError("example_exists", { example_id: taken });
}

function newExample(
  { dataset_no, tenant_id }: { dataset_no: number; tenant_id: string },
  example_index: number,
  body: ExampleCreate,
  now: number,
) {
  const id = body.id ?? newId();
  const example: ExampleRow = {
    dataset_no,
    example_index,
    tenant_id,
    example_id: id,
    row_id: id,
    version: 1,
    digest: digestOf(body.inputs, body.outputs ?? null),
    source_run_id: body.source_run_id ?? null,
    deleted: 0,
    // The caller may backdate `created_at`. `modified_at` is always now, because `as_of` selects versions by time.
    created_at: body.created_at === undefined ? now : Math.floor(body.created_at / 1000),
    modified_at: now,
  };
  const { metadata, split } = extractSplit(body);
  const version: ExampleVersionRow = {
    dataset_no,
    example_index,
    version: 1,
    inputs: JSON.stringify(body.inputs),
    outputs: toJson(body.outputs),
    metadata: toJson(metadata),
    splits: JSON.stringify(split ?? []),
    deleted: 0,
    created_at: now,
  };
  return { example, version };
}

async function addVersion(tx: Tx, example: ExampleRow, change: ExampleUpdate, isDeleted = false): Promise<void> {
  const before = (await findVersion(tx, example)) as ExampleVersionRow;
  const { metadata, split } = extractSplit(change);
  const inputs = change.inputs ?? (JSON.parse(before.inputs) as JsonObject);
  const outputs = change.outputs === undefined ? parseJson<JsonObject>(before.outputs) : change.outputs;
  const version = example.version + 1;
  // Later than the previous version, also within one millisecond: as_of distinguishes versions by time.
  const modified_at = Math.max(await readNow(tx), before.created_at + 1);
  const deleted = isDeleted ? 1 : 0;
  const changed = {
    ...before,
    version,
    inputs: JSON.stringify(inputs),
    outputs: toJson(outputs),
    metadata: metadata === undefined ? before.metadata : toJson(metadata),
    splits: split === undefined ? before.splits : JSON.stringify(split),
    deleted,
    created_at: modified_at,
  };
  await insertExamples(tx, [], [changed]);
  const { dataset_no, example_index } = example;
  const digest = digestOf(inputs, outputs);
  await setExampleVersion(tx, { dataset_no, example_index, version, digest, deleted, modified_at });
}

/** Responses have the splits in the metadata, and clients may send them back there. `split` takes precedence. */
function extractSplit({ metadata, split }: ExampleUpdate): ExampleUpdate {
  if (!metadata || !("dataset_split" in metadata)) return { metadata, split };
  const { dataset_split, ...others } = metadata;
  const parsed = exampleSplits.safeParse(dataset_split);
  return { metadata: others, split: split ?? (parsed.success ? parsed.data : undefined) };
}
