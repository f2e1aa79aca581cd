import type { Caller } from "../../platform/contract/caller.ts";
import { type Database, type Tx, writeUnique } from "../../platform/database/database.ts";
import { ApiError, InvalidRequestError } from "../../platform/errors.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import { openAttachmentLink } from "../attachment-links.ts";
import type { Example, ExampleCount, ExampleQuery } from "../contract/datasets/examples.ts";
import type { ExampleIds, MetadataOperation, MetadataStatuses } from "../contract/datasets/platform-examples.ts";
import { type AsOf, LATEST, uuidOrHex } from "../contract/fields.ts";
import { readExampleFilters } from "../filter/parse.ts";
import { attachmentUrlsOf, datasetIds, getDataset } from "../lookups.ts";
import { selectFields, toExample } from "../serialization/records.ts";
import { lockDataset } from "../storage/datasets.ts";
import { exampleAttachmentsBySecret, readExampleAttachment } from "../storage/example-attachments.ts";
import {
  countExamples,
  type ExampleFilter,
  eraseExample,
  findExample,
  listExamples,
  type VersionedExample,
} from "../storage/examples.ts";
import type { DatasetRow } from "../storage/schema.ts";
import { SchemaChecks } from "./dataset-schemas.ts";
import { changeMetadata } from "./example-metadata.ts";
import { type FormBody, readExampleForm, toExampleChanges, toNewExamples } from "./form.ts";
import {
  addExamples,
  changeExample,
  type ExampleChange,
  lockExample,
  type NewExample,
  removeExample,
} from "./store-examples.ts";
import { findVersionTime } from "./versions.ts";

/** `base_url` is the address of this API as the client sees it, for the links to attachments. */
export const exampleOperations = (database: Database) => ({
  async list(caller: Caller, query: ExampleQuery, base_url: string): Promise<Partial<Example>[]> {
    const { read } = database;
    const { order, limit, offset, select, exclude_default_fields } = query;
    // Sorting by time is descending by default.
    const descending = query.descending ?? (order === "recent" || order === "recently_created");
    const page = { order, descending, seed: query.random_seed ?? 0, limit, offset };
    const rows = await listExamples(read, caller.tenant_id, await toFilter(read, caller, query), page);
    const examples = await toExamples(read, rows, select?.includes("attachment_urls") ? base_url : undefined);
    if (!select) return examples;
    const selected = new Set<string>([...select, ...(exclude_default_fields ? ["id"] : REQUIRED_FIELDS)]);
    return examples.map((example) => selectFields(example, (name) => selected.has(name)));
  },

  async count(caller: Caller, query: ExampleCount): Promise<number> {
    return countExamples(database.read, caller.tenant_id, await toFilter(database.read, caller, query));
  },

  async read(caller: Caller, example_id: string, as_of: AsOf, base_url: string): Promise<Example> {
    const { read } = database;
    const found = await findExample(read, caller.tenant_id, example_id);
    if (!found) throw new ApiError("example_not_found");
    const filter = { id: [example_id], as_of: await findVersionTime(read, found.dataset_no, as_of) };
    const examples = await toExamples(read, await listExamples(read, caller.tenant_id, filter, FIRST), base_url);
    if (!examples[0]) throw new ApiError("example_not_found");
    return examples[0];
  },

  /** Adds all examples to a dataset, or none. */
  async create(caller: Caller, dataset_id: string, bodies: NewExample[], base_url: string): Promise<Example[]> {
    return writeUnique(database, async (tx) => {
      const rows = await addExamples(tx, caller, await lockOfDataset(tx, caller, dataset_id), bodies);
      return toExamples(tx, rows, base_url);
    });
  },

  /** {@link create} with a multipart body, which may contain attachments. */
  async upload(caller: Caller, dataset_id: string, ...form: FormBody): Promise<ExampleIds> {
    const bodies = toNewExamples(readExampleForm(form));
    return writeUnique(database, async (tx) =>
      toIds(await addExamples(tx, caller, await lockOfDataset(tx, caller, dataset_id), bodies)),
    );
  },

  /** Updates all examples, or none. */
  async update(caller: Caller, changes: ExampleChange[], base_url: string): Promise<Example[]> {
    return database.write(async (tx) => toExamples(tx, await changeAll(tx, caller, changes), base_url));
  },

  /** {@link update} with a multipart body. The examples must belong to the dataset. */
  async patch(caller: Caller, dataset_id: string, ...form: FormBody): Promise<ExampleIds> {
    const changes = toExampleChanges(readExampleForm(form));
    return database.write(async (tx) => {
      return toIds(await changeAll(tx, caller, changes, await getDataset(tx, caller, dataset_id)));
    });
  },

  /** Adds the examples that are new and updates the others: all, or none. */
  async upsert(caller: Caller, ...form: FormBody): Promise<ExampleIds> {
    const parts = readExampleForm(form);
    return writeUnique(database, async (tx) => {
      const rows: VersionedExample[] = [];
      const checks = new SchemaChecks();
      for (const part of parts) {
        const dataset_id = uuidOrHex.safeParse(part.body.dataset_id);
        if (!dataset_id.success) throw missingDataset(part.id);
        const dataset = await lockOfDataset(tx, caller, dataset_id.data);
        const known = await findExample(tx, caller.tenant_id, part.id);
        if (known && known.deleted === 0)
          rows.push(...(await changeAll(tx, caller, toExampleChanges([part]), { ...dataset, checks })));
        else rows.push(...(await addExamples(tx, caller, dataset, toNewExamples([part]), checks)));
      }
      return toIds(rows);
    });
  },

  async updateMetadata(
    caller: Caller,
    dataset_id: string,
    { example_ids, operations }: { example_ids: string[]; operations: MetadataOperation[] },
  ): Promise<MetadataStatuses> {
    return database.write(async (tx) => {
      const { dataset_no } = await lockOfDataset(tx, caller, dataset_id);
      const found = await changeMetadata(tx, dataset_no, example_ids, operations);
      const description = "The dataset does not contain an example with this ID.";
      return {
        statuses: example_ids.map((id) =>
          found.has(id) ? { id, status: "UPDATED" } : { id, status: "NOT_FOUND", description },
        ),
      };
    });
  },

  async delete(caller: Caller, ids: readonly string[]): Promise<void> {
    await database.write(async (tx) => {
      for (const id of new Set(ids)) {
        const example = await lockExample(tx, caller, id);
        if (example.deleted === 1) throw new ApiError("example_not_found");
        await removeExample(tx, example);
      }
    });
  },

  /** Deletes an example of a dataset. Does nothing if it is already deleted. */
  async deleteOf(caller: Caller, dataset_id: string, example_id: string): Promise<void> {
    await database.write(async (tx) => {
      const { dataset_no } = await getDataset(tx, caller, dataset_id);
      const example = await lockExample(tx, caller, example_id);
      if (example.dataset_no !== dataset_no) throw new ApiError("example_not_found");
      if (example.deleted === 0) await removeExample(tx, example);
    });
  },

  /** Deletes examples with the content of all their versions and their attachments. */
  async erase(caller: Caller, ids: readonly string[]): Promise<void> {
    await database.write(async (tx) => {
      for (const id of new Set(ids)) {
        const example = await lockExample(tx, caller, id);
        if (example.deleted === 0) await removeExample(tx, example);
        await eraseExample(tx, example);
      }
    });
  },

  /**
   * Finds an attachment by the link in its URL, which grants access to it. Returns null if the link is of no example.
   *
   * @throws ApiError when the link has expired
   */
  findAttachment: async (link: string) =>
    (await openAttachmentLink(link, Date.now(), (id) => exampleAttachmentsBySecret(database.read, id))) ?? null,

  readAttachment: async (token: string): Promise<Uint8Array> =>
    (await readExampleAttachment(database.read, token)) ?? new Uint8Array(),
});

async function lockOfDataset(tx: Tx, caller: Caller, dataset_id: string): Promise<DatasetRow> {
  const locked = await lockDataset(tx, (await getDataset(tx, caller, dataset_id)).dataset_no);
  if (!locked) throw new ApiError("dataset_not_found");
  return locked;
}

/** @param dataset_no if given, the examples must belong to this dataset */
async function changeAll(
  tx: Tx,
  caller: Caller,
  changes: ExampleChange[],
  { dataset_no, checks = new SchemaChecks() }: { dataset_no?: number; checks?: SchemaChecks } = {},
): Promise<VersionedExample[]> {
  const changed: VersionedExample[] = [];
  for (const { id, ...change } of changes) {
    const example = await lockExample(tx, caller, id);
    const isElsewhere = dataset_no !== undefined && example.dataset_no !== dataset_no;
    if (example.deleted === 1 || isElsewhere) throw new ApiError("example_not_found");
    changed.push(await changeExample(tx, example, change, checks));
  }
  return changed;
}

/** @param base_url undefined omits the attachments */
async function toExamples(tx: Tx, rows: VersionedExample[], base_url: string | undefined): Promise<Example[]> {
  const ids = await datasetIds(
    tx,
    rows.map(({ dataset_no }) => dataset_no),
  );
  const attachments = base_url === undefined ? new Map() : await attachmentsOf(tx, rows, base_url);
  return rows.map((row) => toExample(row, ids.get(row.dataset_no) as string, attachments.get(row) ?? null));
}

async function attachmentsOf(tx: Tx, rows: VersionedExample[], base_url: string) {
  const found = new Map<VersionedExample, Example["attachment_urls"]>();
  for (const [dataset_no, examples] of Map.groupBy(rows, (row) => row.dataset_no))
    for (const [example, urls] of await attachmentUrlsOf(tx, dataset_no, examples, base_url)) found.set(example, urls);
  return found;
}

const toIds = (rows: VersionedExample[]): ExampleIds => ({
  count: rows.length,
  example_ids: rows.map(({ example_id }) => example_id),
  as_of: rows.length === 0 ? null : isoOfMilliseconds(Math.max(...rows.map(({ version_at }) => Number(version_at)))),
});

async function toFilter(read: Tx, caller: Caller, query: ExampleCount): Promise<ExampleFilter> {
  const { id, metadata, splits, full_text_contains: text, dataset, as_of } = query;
  const dataset_no = dataset === undefined ? undefined : (await getDataset(read, caller, dataset)).dataset_no;
  const filters = readExampleFilters(query.filter);
  return { id, metadata, splits, text, filters, dataset_no, as_of: await toVersionTime(read, dataset_no, as_of) };
}

async function toVersionTime(read: Tx, dataset_no: number | undefined, as_of: AsOf): Promise<number | undefined> {
  if (dataset_no !== undefined) return findVersionTime(read, dataset_no, as_of);
  if (as_of === LATEST || typeof as_of === "number") return findVersionTime(read, 0, as_of);
  const msg =
    "Value error, a version tag other than `latest` requires a dataset: add the query parameter `dataset`, or use an ISO 8601 time in `as_of`";
  throw new InvalidRequestError([{ loc: ["query", "as_of"], msg, type: "value_error", input: as_of }]);
}

const missingDataset = (id: string): InvalidRequestError =>
  new InvalidRequestError([
    { loc: ["body", id, "dataset_id"], msg: "Value error, the dataset ID is required", type: "value_error" },
  ]);

const FIRST = { order: "id", descending: false, seed: 0, limit: 1, offset: 0 } as const;

/** The official clients require these fields. */
const REQUIRED_FIELDS = ["id", "dataset_id", "inputs", "name", "created_at", "modified_at"];
