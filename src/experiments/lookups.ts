import type { Caller } from "../platform/contract/caller.ts";
import type { Database, Tx } from "../platform/database/database.ts";
import { ApiError } from "../platform/errors.ts";
import type { Example } from "./contract/datasets/examples.ts";
import { attachmentUrl, toAttachmentUrls } from "./serialization/records.ts";
import { refreshDirty } from "./sessions/refresh-stats.ts";
import { type AnnotationQueueRow, findQueue, lockQueue } from "./storage/annotation-queues/queues.ts";
import { type DatasetWithCounts, datasetsByNo, findDataset } from "./storage/datasets.ts";
import { attachmentsOfExamples, isOfVersion } from "./storage/example-attachments.ts";
import type { VersionedExample } from "./storage/examples.ts";
import { experimentsById, findExperiment } from "./storage/experiments.ts";
import type { ExperimentRow } from "./storage/schema.ts";

/** @throws ApiError when the workspace of the caller has no dataset with this id */
export async function getDataset(tx: Tx, { tenant_id }: Caller, dataset_id: string): Promise<DatasetWithCounts> {
  const dataset = await findDataset(tx, tenant_id, dataset_id);
  if (!dataset) throw new ApiError("dataset_not_found");
  return dataset;
}

/** @throws ApiError when the workspace of the caller has no experiment with this id */
export async function getExperiment(
  tx: Tx,
  { tenant_id }: Pick<Caller, "tenant_id">,
  experiment_id: string,
): Promise<ExperimentRow> {
  const experiment = await findExperiment(tx, tenant_id, experiment_id);
  if (!experiment) throw new ApiError("session_not_found");
  return experiment;
}

/** @throws ApiError when the workspace of the caller has no annotation queue with this id */
export async function getAnnotationQueue(tx: Tx, { tenant_id }: Caller, queue_id: string): Promise<AnnotationQueueRow> {
  const queue = await findQueue(tx, tenant_id, queue_id);
  if (!queue) throw new ApiError("annotation_queue_not_found");
  return queue;
}

/** Like {@link getAnnotationQueue}, but also locks the queue until the transaction ends. */
export async function lockAnnotationQueue(
  tx: Tx,
  { tenant_id }: Caller,
  queue_id: string,
): Promise<AnnotationQueueRow> {
  const queue = await lockQueue(tx, tenant_id, queue_id);
  if (!queue) throw new ApiError("annotation_queue_not_found");
  return queue;
}

/**
 * Returns experiments of one dataset in the order of the given ids, without duplicates.
 *
 * @throws ApiError when an experiment does not exist or belongs to another dataset
 */
export async function getExperiments(
  tx: Tx,
  { tenant_id }: Caller,
  dataset_no: number,
  ids: readonly string[],
): Promise<ExperimentRow[]> {
  const found = await experimentsById(tx, tenant_id, [...new Set(ids)]);
  const byId = new Map(found.map((experiment) => [experiment.experiment_id, experiment]));
  return [...new Set(ids)].map((session_id) => {
    const experiment = byId.get(session_id);
    if (!experiment) throw new ApiError("session_not_found");
    if (experiment.dataset_no !== dataset_no) throw new ApiError("session_elsewhere", { session_id });
    return experiment;
  });
}

/** Like {@link getExperiments}, but first computes outdated statistics and score vectors. */
export async function readExperiments(
  database: Database,
  caller: Caller,
  dataset_no: number,
  ids: readonly string[],
): Promise<ExperimentRow[]> {
  await refreshDirty(database, caller, { dataset_no: [dataset_no], id: [...ids] });
  return getExperiments(database.read, caller, dataset_no, ids);
}

/** Reads the ids of datasets, keyed by `dataset_no`. */
export async function datasetIds(tx: Tx, numbers: readonly (number | null)[]): Promise<Map<number | null, string>> {
  const unique = [...new Set(numbers)].filter((no) => no !== null);
  return new Map((await datasetsByNo(tx, unique)).map((dataset) => [dataset.dataset_no, dataset.dataset_id]));
}

/** Returns the URLs of the attachments that each example has in its given version. Examples without attachments have no entry. */
export async function attachmentUrlsOf(
  tx: Tx,
  dataset_no: number,
  examples: readonly VersionedExample[],
  base_url: string,
): Promise<Map<VersionedExample, Example["attachment_urls"]>> {
  const indexes = examples.map(({ example_index }) => example_index);
  const all = Map.groupBy(await attachmentsOfExamples(tx, dataset_no, indexes), ({ example_index }) => example_index);
  const found = new Map<VersionedExample, Example["attachment_urls"]>();
  for (const example of examples) {
    const own = all.get(example.example_index)?.filter((info) => isOfVersion(info, example.version)) ?? [];
    if (own.length > 0) found.set(example, toAttachmentUrls(own, attachmentUrl(base_url)));
  }
  return found;
}

/** The cursor of the page that begins at an offset. */
export const cursorOfOffset = (offset: number): string => Buffer.from(String(offset)).toString("base64url");

/** @throws ApiError when the cursor is not a result of {@link cursorOfOffset} */
export function offsetOfCursor(cursor: string): number {
  const offset = Buffer.from(cursor, "base64url").toString();
  if (!/^\d{1,9}$/.test(offset)) throw new ApiError("bad_cursor");
  return Number(offset);
}
