import type { Caller } from "../../platform/contract/caller.ts";
import { readNow, type Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { JsonObject } from "../../platform/lib/json/json.ts";
import type { ExampleCreate, ExampleUpdate } from "../contract/datasets/examples.ts";
import { parseJson, toJson } from "../serialization/records.ts";
import { datasetsByNo, lockDataset, updateDataset } from "../storage/datasets.ts";
import {
  examplesAt,
  examplesBy,
  findExample,
  findVersion,
  insertExamples,
  setExampleVersion,
  takenExampleIds,
  type VersionedExample,
} from "../storage/examples.ts";
import { findRun } from "../storage/runs.ts";
import type { DatasetRow, ExampleRow, ExampleVersionRow } from "../storage/schema.ts";
import { attachmentsOf, findTraceRun } from "../storage/traces/trace-search.ts";
import { readAttachment } from "../storage/traces/traces.ts";
import { digestOf } from "../upload/staging.ts";
import { SchemaChecks } from "./dataset-schemas.ts";
import {
  addAttachments,
  changeAttachments,
  endAttachmentsOf,
  invalidValue,
  type NewAttachment,
} from "./example-attachments.ts";
import { extractSplit } from "./example-metadata.ts";

export type NewExample = ExampleCreate & { attachments?: NewAttachment[] };
export type ExampleChange = ExampleUpdate & { id: string; attachments?: NewAttachment[] };

/** Inputs and outputs that a request copies from runs are in memory together. A request of 1 MB can name 10,000 runs of 20 MB. */
const MAX_COPIED_CHARS = 200_000_000;

/** Adds examples to a dataset. The caller has locked the dataset in the same transaction. */
export async function addExamples(
  tx: Tx,
  caller: Caller,
  dataset: DatasetRow,
  bodies: NewExample[],
  checks = new SchemaChecks(),
): Promise<VersionedExample[]> {
  if (dataset.externally_managed === 1) throw new ApiError("dataset_is_managed", { name: dataset.name });
  const deleted = await findDeleted(tx, caller, dataset, bodies);
  const schemas = checks.of(dataset);
  // All examples get the same time, so that lists sorted by time keep the order of the request.
  const now = await readNow(tx);
  const examples: ExampleRow[] = [];
  const versions: ExampleVersionRow[] = [];
  const indexes: number[] = [];
  let copied_chars = 0;
  for (const [index, body] of bodies.entries()) {
    const complete = await withSourceRun(tx, caller, body);
    schemas.check(complete, ["body", body.id ?? index]);
    const before = deleted.get(body.id);
    const example_index = before?.example_index ?? dataset.next_example_index + examples.length;
    const { example, version } = newExample(dataset, example_index, complete, now);
    if (body.use_source_run_io) copied_chars += version.inputs.length + (version.outputs?.length ?? 0);
    if (copied_chars > MAX_COPIED_CHARS)
      throw invalidValue(
        ["body", body.id ?? index],
        `one request can copy at most ${MAX_COPIED_CHARS} characters from runs: add the examples in several requests`,
      );
    indexes.push(example_index);
    if (before) versions.push(await restoredVersion(tx, before, example, version));
    else {
      examples.push(example);
      versions.push(version);
    }
    await addAttachments(tx, example, before ? before.version + 1 : 1, complete.attachments);
  }
  await insertExamples(tx, examples, versions);
  await updateDataset(tx, dataset.dataset_no, {
    next_example_index: dataset.next_example_index + examples.length,
    example_count: dataset.example_count + bodies.length,
  });
  const order = new Map(indexes.map((example_index, at) => [example_index, at]));
  const at = ({ example_index }: VersionedExample) => order.get(example_index) as number;
  return (await examplesAt(tx, dataset.dataset_no, indexes)).sort((a, b) => at(a) - at(b));
}

/** Updates an example. The caller has locked its dataset. */
export async function changeExample(
  tx: Tx,
  example: ExampleRow,
  { attachments = [], attachments_operations, ...change }: Omit<ExampleChange, "id">,
  checks: SchemaChecks,
): Promise<VersionedExample> {
  const { dataset_no, example_index } = example;
  const [dataset] = await datasetsByNo(tx, [dataset_no]);
  checks.of(dataset as DatasetRow).check(change, ["body", example.example_id]);
  const version = await addVersion(tx, example, change);
  if (attachments_operations || attachments.length > 0)
    await changeAttachments(tx, example, version, attachments, attachments_operations);
  await updateDataset(tx, dataset_no, {});
  const [row] = await examplesAt(tx, dataset_no, [example_index]);
  return row as VersionedExample;
}

/** Marks an example as deleted. Older versions of the dataset keep it. The caller has locked the dataset. */
export async function removeExample(tx: Tx, example: ExampleRow): Promise<void> {
  await endAttachmentsOf(tx, example, await addVersion(tx, example, {}, true));
  const [dataset] = await datasetsByNo(tx, [example.dataset_no]);
  if (dataset) await updateDataset(tx, dataset.dataset_no, { example_count: dataset.example_count - 1 });
}

/** Reads an example and locks its dataset until the transaction ends. */
export async function lockExample(tx: Tx, { tenant_id }: Caller, example_id: string): Promise<ExampleRow> {
  const found = await findExample(tx, tenant_id, example_id);
  if (found) await lockDataset(tx, found.dataset_no);
  // Another transaction may have changed the example before the dataset was locked.
  const example = await findExample(tx, tenant_id, example_id);
  if (!example) throw new ApiError("example_not_found");
  return example;
}

/**
 * Returns the deleted examples that the request adds again, by id. Test suites do this, because they derive ids from the inputs.
 *
 * @throws ApiError when an id occurs twice in the request or is used by another example
 */
async function findDeleted(tx: Tx, { tenant_id }: Caller, { dataset_no }: DatasetRow, bodies: NewExample[]) {
  const ids = bodies.flatMap(({ id }) => id ?? []);
  const unique = new Set<string>();
  const duplicate = ids.find((id) => unique.size === unique.add(id).size);
  if (duplicate !== undefined) throw new ApiError("example_exists", { example_id: duplicate });
  const known = (await examplesBy(tx, "example_id", dataset_no, ids)).filter(({ deleted }) => deleted === 1);
  const found = new Map<string | undefined, ExampleRow>(known.map((example) => [example.example_id, example]));
  const taken = await takenExampleIds(tx, tenant_id, ids);
  for (const id of taken) if (!found.has(id)) throw new ApiError("example_exists", { example_id: id });
  return found;
}

/** Restores a deleted example, and returns its next version with the new content. */
async function restoredVersion(
  tx: Tx,
  before: ExampleRow,
  { digest, modified_at }: ExampleRow,
  content: ExampleVersionRow,
): Promise<ExampleVersionRow> {
  const { dataset_no, example_index } = before;
  const version = before.version + 1;
  await setExampleVersion(tx, { dataset_no, example_index, version, digest, deleted: 0, modified_at });
  return { ...content, version };
}

type CompleteExample = NewExample & { inputs: JsonObject };

/** Copies inputs, outputs and attachments from the source run, if the request for the example selects them. */
async function withSourceRun(tx: Tx, { tenant_id }: Caller, body: NewExample): Promise<CompleteExample> {
  const { source_run_id, use_source_run_io, use_source_run_attachments: names, attachments = [] } = body;
  const complete = { ...body, inputs: body.inputs ?? {} };
  if (source_run_id === undefined || !(use_source_run_io || names.length > 0)) return complete;
  const traced = await findTraceRun(tx, tenant_id, source_run_id);
  const run = traced ?? (await findRun(tx, tenant_id, source_run_id));
  if (!run) throw new ApiError("run_not_found");
  const infos = traced ? await attachmentsOf(tx, [traced.run_no]) : [];
  const unknown = names.find((name) => !infos.some((info) => info.name === name));
  if (unknown !== undefined && !use_source_run_io)
    throw invalidValue(["body", body.id ?? "", "use_source_run_attachments"], `the run has no attachment "${unknown}"`);
  const copies: NewAttachment[] = [];
  for (const { name, mime_type } of infos) {
    const isWanted = use_source_run_io || names.includes(name);
    if (traced && isWanted && !attachments.some((own) => own.name === name))
      copies.push({ name, mime_type, data: await readAttachment(tx, traced.run_no, name) });
  }
  const all = [...attachments, ...copies];
  if (!use_source_run_io) return { ...complete, attachments: all };
  const outputs = parseJson(run.outputs ?? null) ?? undefined;
  return { ...body, inputs: parseJson(run.inputs ?? null) ?? {}, outputs, attachments: all };
}

function newExample(
  { dataset_no, tenant_id }: { dataset_no: number; tenant_id: string },
  example_index: number,
  body: CompleteExample,
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

async function addVersion(tx: Tx, example: ExampleRow, change: ExampleUpdate, isDeleted = false): Promise<number> {
  const before = (await findVersion(tx, example)) as ExampleVersionRow;
  const { metadata, split } = extractSplit(change);
  const inputs = change.inputs ?? (JSON.parse(before.inputs) as JsonObject);
  const outputs = change.outputs === undefined ? parseJson<JsonObject>(before.outputs) : change.outputs;
  const version = example.version + 1;
  // Must be later than the previous version, even in the same millisecond, because as_of distinguishes versions by time.
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
  return version;
}
