import type { Caller } from "../../platform/contract/caller.ts";
import { type Database, readNow, type Tx } from "../../platform/database/database.ts";
import { writeUnique } from "../../platform/database/write-unique.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { UploadHead, UploadResult } from "../contract/upload.ts";
import { rememberConfigs } from "../feedback-configs.ts";
import { newFeedbackRow } from "../feedback-row.ts";
import { renewStats } from "../renew-stats.ts";
import { findDataset, updateDataset } from "../storage/datasets.ts";
import { analyzeExamples } from "../storage/examples.ts";
import { insertExperiment, setStats } from "../storage/experiments.ts";
import { insertFeedback } from "../storage/feedback.ts";
import { insertRuns } from "../storage/runs.ts";
import type {
  DatasetRow,
  ExperimentOutputsRow,
  ExperimentRow,
  ExperimentRunRow,
  FeedbackRow,
} from "../storage/schema.ts";
import { datasetOf, sessionOf, textOf } from "../wire.ts";
import { datasetFor } from "./dataset.ts";
import { ExamplePlaces } from "./example-places.ts";
import type { StagedRow } from "./staged-row.ts";
import type { CheckedUpload } from "./upload.ts";

/** Rows are stored in groups, so that no more than this many are in memory as rows of tables. */
const GROUP = 500;

/** From so many rows on the planner of the database is told of them. */
const MANY = 1_000;

/**
 * Stores a checked upload: all of it in one transaction, or nothing.
 *
 * @throws ApiError when the experiment's name or the id of a score is taken, or the dataset takes no uploads
 */
export async function storeUpload(database: Database, caller: Caller, upload: CheckedUpload): Promise<UploadResult> {
  try {
    const stored = await writeUnique(database, (tx) => store(tx, caller, upload));
    // The upload is whole; what the planner is not told now it finds out by itself.
    if (upload.staging.count >= MANY) await analyzeExamples(database).catch(() => undefined);
    return stored;
  } catch (error) {
    throw database.read.dialect.isUniqueViolation(error)
      ? new ApiError("feedback_exists", { feedback_id: "of a score" })
      : error;
  }
}

async function store(tx: Tx, caller: Caller, { head, staging }: CheckedUpload): Promise<UploadResult> {
  // One moment for all of the upload: it is one change of the dataset.
  const now = await readNow(tx);
  const dataset = await datasetFor(tx, caller.tenant_id, head);
  const experiment = await makeExperiment(tx, dataset, head);
  const places = new ExamplePlaces(tx, dataset, now);
  for (const group of groupsOf(staging.rows(), GROUP)) await storeGroup(tx, { experiment, places, now }, group);
  await storeSummary(tx, experiment, head, now);
  await updateDataset(tx, dataset.dataset_no, {
    next_ord: places.next,
    example_count: dataset.example_count + places.added,
    next_test_run: dataset.next_test_run + 1,
  });
  await setStats(tx, experiment.experiment_no, await renewStats(tx, experiment.experiment_no));
  const changed = await findDataset(tx, caller.tenant_id, dataset.dataset_id);
  return { dataset: datasetOf(changed as DatasetRow), experiment: sessionOf(experiment, dataset.dataset_id, false) };
}

function* groupsOf<T>(items: Iterable<T>, size: number): Generator<T[]> {
  let group: T[] = [];
  for (const item of items) {
    group.push(item);
    if (group.length === size) {
      yield group;
      group = [];
    }
  }
  if (group.length > 0) yield group;
}

async function makeExperiment(tx: Tx, dataset: DatasetRow, head: UploadHead): Promise<ExperimentRow> {
  const made = await insertExperiment(tx, {
    experiment_id: newId(),
    tenant_id: dataset.tenant_id,
    dataset_no: dataset.dataset_no,
    name: head.experiment_name,
    description: head.experiment_description ?? null,
    start_us: head.experiment_start_time,
    end_us: head.experiment_end_time,
    extra: head.experiment_metadata === undefined ? null : textOf({ metadata: head.experiment_metadata }),
    trace_tier: "longlived",
    default_dataset_id: null,
    test_run_number: dataset.next_test_run,
    stats: "{}",
  });
  if (!made) throw new ApiError("session_exists");
  return made;
}

/** Where the rows of an upload go. */
interface Destination {
  experiment: ExperimentRow;
  places: ExamplePlaces;
  now: number;
}

async function storeGroup(tx: Tx, { experiment, places, now }: Destination, rows: StagedRow[]): Promise<void> {
  const runs: ExperimentRunRow[] = [];
  const outputs: ExperimentOutputsRow[] = [];
  const feedback: FeedbackRow[] = [];
  const found = await places.of(rows);
  for (const [index, row] of rows.entries()) {
    const { ord, version, repetition } = found[index] as (typeof found)[number];
    const place = { experiment_no: experiment.experiment_no, ord, repetition };
    runs.push({
      ...place,
      run_id: newId(),
      tenant_id: experiment.tenant_id,
      example_version: version,
      name: row.name,
      start_us: row.start_us,
      end_us: row.end_us,
      error: row.error,
      metadata: row.metadata,
      inputs_preview: row.inputs_preview,
      outputs_preview: row.outputs_preview,
    });
    if (row.outputs !== null) outputs.push({ ...place, outputs: row.outputs });
    for (const score of row.scores) feedback.push(newFeedbackRow(experiment.tenant_id, place, score, now));
  }
  await insertRuns(tx, runs, outputs);
  await insertFeedback(tx, feedback);
  await rememberConfigs(
    tx,
    experiment.tenant_id,
    rows.flatMap(({ scores }) => scores),
  );
}

async function storeSummary(
  tx: Tx,
  { tenant_id, experiment_no }: ExperimentRow,
  head: UploadHead,
  now: number,
): Promise<void> {
  const scores = head.summary_experiment_scores ?? [];
  const place = { experiment_no, ord: null, repetition: null };
  await insertFeedback(
    tx,
    scores.map((score) => newFeedbackRow(tenant_id, place, score, now)),
  );
  await rememberConfigs(tx, tenant_id, scores);
}
