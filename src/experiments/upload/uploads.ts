import type { Caller } from "../../platform/contract/caller.ts";
import { type Database, readNow, type Tx, writeUnique } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { UploadHead, UploadResult } from "../contract/upload.ts";
import { newFeedbackRow } from "../feedback/feedback.ts";
import { insertMissingConfigs } from "../feedback/feedback-configs.ts";
import { toDataset, toJson, toSession } from "../serialization/records.ts";
import { refreshStats } from "../sessions/refresh-stats.ts";
import { findDataset, findDatasetByName, insertDataset, lockDataset, updateDataset } from "../storage/datasets.ts";
import { analyzeExamples } from "../storage/examples.ts";
import { insertExperiment } from "../storage/experiments.ts";
import { insertFeedback } from "../storage/feedback.ts";
import { insertRuns } from "../storage/runs.ts";
import type {
  DatasetRow,
  ExperimentOutputsRow,
  ExperimentRow,
  ExperimentRunRow,
  FeedbackRow,
} from "../storage/schema.ts";
import { ExampleResolver } from "./example-resolver.ts";
import { type CheckedUpload, IncomingUpload } from "./incoming-upload.ts";
import type { StagedRow } from "./staging.ts";

/** The maximum number of rows in memory. */
const BATCH_ROWS = 500;

const ANALYZE_MIN_ROWS = 1_000;

/** Uploads in progress. An upload writes to the database and takes locks only after its last byte has arrived. */
export class Uploads {
  readonly #database: Database;
  readonly #open = new Map<string, { upload: IncomingUpload; caller: Caller }>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Returns the ticket that identifies the upload in the following calls. */
  async begin(caller: Caller, limit_bytes: number): Promise<string> {
    const ticket = newId();
    this.#open.set(ticket, { caller, upload: new IncomingUpload(limit_bytes) });
    return ticket;
  }

  async push(ticket: string, chunk: Uint8Array): Promise<void> {
    this.#find(ticket).upload.push(chunk);
  }

  /**
   * Stores all rows, or none.
   *
   * @returns the log fields of the upload, and the response as JSON: it may have 16 MB of metadata, and the main thread sends it
   *   without parsing it
   */
  async finish(ticket: string): Promise<{ dataset_id: string; session_id: string; rows: number; response: string }> {
    const { upload, caller } = this.#find(ticket);
    try {
      const checked = upload.finish();
      const rows = checked.staging.count;
      const result = await storeUpload(this.#database, caller, checked);
      const { dataset, experiment } = result;
      return { dataset_id: dataset.id, session_id: experiment.id, rows, response: JSON.stringify(result) };
    } finally {
      await this.abandon(ticket);
    }
  }

  /** Discards the data of an upload that has finished or was rejected, or whose client has disconnected. */
  async abandon(ticket: string): Promise<void> {
    this.#open.get(ticket)?.upload.discard();
    this.#open.delete(ticket);
  }

  #find(ticket: string): { upload: IncomingUpload; caller: Caller } {
    const found = this.#open.get(ticket);
    if (!found) throw new Error(`The upload ${ticket} no longer exists: it has finished or was discarded.`);
    return found;
  }
}

/**
 * Stores all rows of a checked upload in one transaction, or none.
 *
 * @throws ApiError when the experiment name or the id of a score is taken, or {@link findOrCreateDataset} refuses the dataset
 */
async function storeUpload(database: Database, caller: Caller, upload: CheckedUpload): Promise<UploadResult> {
  try {
    const stored = await writeUnique(database, (tx) => store(tx, caller, upload));
    // The upload is committed. If this fails, autovacuum updates the statistics later.
    if (upload.staging.count >= ANALYZE_MIN_ROWS) await analyzeExamples(database).catch(() => undefined);
    return stored;
  } catch (error) {
    throw database.read.dialect.isUniqueViolation(error)
      ? new ApiError("feedback_exists", { feedback_id: "of a score" })
      : error;
  }
}

async function store(tx: Tx, caller: Caller, { head, staging }: CheckedUpload): Promise<UploadResult> {
  // All rows have the same time: an upload is one version of the dataset.
  const now = await readNow(tx);
  const dataset = await findOrCreateDataset(tx, caller.tenant_id, head);
  const experiment = await createExperiment(tx, dataset, head);
  const examples = new ExampleResolver(tx, dataset, now);
  for (const rows of batches(staging.rows(), BATCH_ROWS)) await storeBatch(tx, experiment, examples, rows);
  await storeSummaryScores(tx, experiment, head, now);
  await updateDataset(tx, dataset.dataset_no, {
    next_example_index: examples.next_example_index,
    example_count: dataset.example_count + examples.added,
    next_test_run: dataset.next_test_run + 1,
  });
  await refreshStats(tx, experiment.experiment_no);
  const changed = await findDataset(tx, caller.tenant_id, dataset.dataset_id);
  return { dataset: toDataset(changed as DatasetRow), experiment: toSession(experiment, dataset.dataset_id, false) };
}

/**
 * Finds the dataset of an upload by id, or by name if the upload has no id, and locks it until the transaction ends. Creates a missing
 * dataset; the default name contains the id.
 *
 * @throws ApiError when id and name belong to different datasets, or the dataset was not created by an upload
 */
async function findOrCreateDataset(tx: Tx, tenant_id: string, head: UploadHead): Promise<DatasetRow> {
  const { dataset_id, dataset_name } = head;
  const found = dataset_id
    ? await findDataset(tx, tenant_id, dataset_id)
    : await findDatasetByName(tx, tenant_id, dataset_name as string);
  if (!found) return createDataset(tx, tenant_id, head);
  if (dataset_name !== undefined && dataset_name !== found.name)
    throw new ApiError("dataset_mismatch", { dataset_id: found.dataset_id, name: found.name, dataset_name });
  if (found.externally_managed !== 1) throw new ApiError("dataset_not_managed", { name: found.name });
  return (await lockDataset(tx, found.dataset_no)) ?? findOrCreateDataset(tx, tenant_id, head);
}

async function createDataset(tx: Tx, tenant_id: string, head: UploadHead): Promise<DatasetRow> {
  const dataset_id = head.dataset_id ?? newId();
  const name = head.dataset_name ?? `dataset-${dataset_id}`;
  const created = await insertDataset(tx, {
    tenant_id,
    dataset_id,
    name,
    description: head.dataset_description ?? null,
    data_type: "kv",
    externally_managed: 1,
    inputs_schema: null,
    outputs_schema: null,
    transformations: null,
    metadata: null,
  });
  if (created) return created;
  // Another upload created the dataset concurrently, or a dataset with another id has the name.
  const other = await findDatasetByName(tx, tenant_id, name);
  if (other && head.dataset_id !== undefined && other.dataset_id !== head.dataset_id)
    throw new ApiError("dataset_mismatch", { dataset_id: other.dataset_id, name, dataset_name: name });
  return findOrCreateDataset(tx, tenant_id, head);
}

function* batches<T>(items: Iterable<T>, size: number): Generator<T[]> {
  let batch: T[] = [];
  for (const item of items) {
    batch.push(item);
    if (batch.length === size) {
      yield batch;
      batch = [];
    }
  }
  if (batch.length > 0) yield batch;
}

async function createExperiment(tx: Tx, dataset: DatasetRow, head: UploadHead): Promise<ExperimentRow> {
  const created = await insertExperiment(tx, {
    experiment_id: newId(),
    tenant_id: dataset.tenant_id,
    dataset_no: dataset.dataset_no,
    name: head.experiment_name,
    description: head.experiment_description ?? null,
    start_us: head.experiment_start_time,
    end_us: head.experiment_end_time,
    extra: head.experiment_metadata === undefined ? null : toJson({ metadata: head.experiment_metadata }),
    trace_tier: "longlived",
    default_dataset_id: null,
    test_run_number: dataset.next_test_run,
    stats: "{}",
  });
  if (!created) throw new ApiError("session_exists");
  return created;
}

async function storeBatch(
  tx: Tx,
  { experiment_no, tenant_id }: ExperimentRow,
  examples: ExampleResolver,
  rows: StagedRow[],
): Promise<void> {
  const runs: ExperimentRunRow[] = [];
  const outputs: ExperimentOutputsRow[] = [];
  const feedback: FeedbackRow[] = [];
  const resolved = await examples.resolve(rows);
  for (const [position, row] of rows.entries()) {
    const { example_index, version, repetition } = resolved[position] as (typeof resolved)[number];
    const key = { experiment_no, example_index, repetition };
    runs.push({
      ...key,
      run_id: newId(),
      tenant_id,
      example_version: version,
      name: row.name,
      start_us: row.start_us,
      end_us: row.end_us,
      error: row.error,
      metadata: row.metadata,
      inputs_preview: row.inputs_preview,
      outputs_preview: row.outputs_preview,
      is_traced: 0,
    });
    if (row.outputs !== null) outputs.push({ ...key, outputs: row.outputs });
    for (const score of row.scores)
      feedback.push(newFeedbackRow(tenant_id, { ...key, run_id: null }, score, examples.now));
  }
  await insertRuns(tx, runs, outputs);
  await insertFeedback(tx, feedback);
  const scores = rows.flatMap((row) => row.scores);
  await insertMissingConfigs(tx, tenant_id, scores);
}

async function storeSummaryScores(
  tx: Tx,
  { tenant_id, experiment_no }: ExperimentRow,
  head: UploadHead,
  now: number,
): Promise<void> {
  const scores = head.summary_experiment_scores ?? [];
  const target = { experiment_no, run_id: null, example_index: null, repetition: null };
  const feedback = scores.map((score) => newFeedbackRow(tenant_id, target, score, now));
  await insertFeedback(tx, feedback);
  await insertMissingConfigs(tx, tenant_id, scores);
}
