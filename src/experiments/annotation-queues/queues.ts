import type { Caller } from "../../platform/contract/caller.ts";
import type { Database, Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import type { QueueOverview } from "../contract/annotation-queues/app-queues.ts";
import type {
  AnnotationQueue,
  QueueCreate,
  QueueQuery,
  QueueUpdate,
  RubricItem,
} from "../contract/annotation-queues/queues.ts";
import { toKeyConfig } from "../feedback/feedback-configs.ts";
import { getAnnotationQueue, getDataset, lockAnnotationQueue } from "../lookups.ts";
import { parseJson, toJson } from "../serialization/records.ts";
import { countSections, deleteItems, existingRuns, queueSizes } from "../storage/annotation-queues/items.ts";
import {
  type AnnotationQueueRow,
  deleteQueue,
  insertQueue,
  listQueues,
  queuesOfRun,
  updateQueue,
} from "../storage/annotation-queues/queues.ts";
import { findDataset } from "../storage/datasets.ts";
import { listConfigs } from "../storage/feedback-configs.ts";
import { addSessionRuns } from "./items.ts";

export const annotationQueueOperations = ({ read, write }: Database) => ({
  async list(caller: Caller, query: QueueQuery): Promise<(AnnotationQueue & { total_runs: number })[]> {
    if (query.queue_type === "pairwise" || query.assigned_to_me) return [];
    const rows = await listQueues(read, caller.tenant_id, query);
    const sizes = await queueSizes(
      read,
      rows.map(({ queue_no }) => queue_no),
    );
    return Promise.all(
      rows.map(async (row) => ({ ...(await toQueue(read, row)), total_runs: sizes.get(row.queue_no) ?? 0 })),
    );
  },

  async overview(caller: Caller, query: QueueQuery): Promise<QueueOverview[]> {
    if (query.queue_type === "pairwise" || query.assigned_to_me) return [];
    const rows = await listQueues(read, caller.tenant_id, query);
    const numbers = rows.map(({ queue_no }) => queue_no);
    const counts = await countSections(read, caller.tenant_id, numbers, caller.user_id);
    return Promise.all(
      rows.map(async (row) => ({
        ...(await toQueue(read, row)),
        items: counts.get(row.queue_no) as QueueOverview["items"],
      })),
    );
  },

  read: async (caller: Caller, queue_id: string): Promise<AnnotationQueue> =>
    toQueue(read, await getAnnotationQueue(read, caller, queue_id)),

  create: (caller: Caller, body: QueueCreate): Promise<AnnotationQueue> =>
    write(async (tx) => {
      const queue = await insertQueue(tx, {
        tenant_id: caller.tenant_id,
        queue_id: body.id ?? newId(),
        name: body.name,
        description: body.description ?? null,
        rubric_instructions: body.rubric_instructions ?? null,
        rubric_items: toJson(body.rubric_items?.map(withoutConfig)),
        default_dataset_id: await datasetId(tx, caller, body.default_dataset),
        num_reviewers_per_item: body.num_reviewers_per_item ?? 1,
        metadata: toJson(body.metadata),
      });
      if (!queue) throw new ApiError("annotation_queue_exists", { queue_id: String(body.id) });
      if (body.session_ids) await addSessionRuns(tx, caller, queue, body.session_ids);
      return toQueue(tx, queue);
    }),

  update: (caller: Caller, queue_id: string, body: QueueUpdate): Promise<AnnotationQueue> =>
    write(async (tx) => {
      const { queue_no } = await lockAnnotationQueue(tx, caller, queue_id);
      const { name, description, rubric_instructions, num_reviewers_per_item, rubric_items, metadata } = body;
      await updateQueue(tx, queue_no, {
        name,
        description,
        rubric_instructions,
        num_reviewers_per_item,
        rubric_items: rubric_items === undefined ? undefined : toJson(rubric_items?.map(withoutConfig)),
        metadata: metadata === undefined ? undefined : toJson(metadata),
        default_dataset_id:
          body.default_dataset === undefined ? undefined : await datasetId(tx, caller, body.default_dataset),
      });
      return toQueue(tx, await getAnnotationQueue(tx, caller, queue_id));
    }),

  delete: (caller: Caller, queue_id: string): Promise<void> =>
    write(async (tx) => {
      const { queue_no } = await lockAnnotationQueue(tx, caller, queue_id);
      await deleteItems(tx, queue_no, {});
      await deleteQueue(tx, queue_no);
    }),

  async listOfRun({ tenant_id }: Caller, run_id: string): Promise<AnnotationQueue[]> {
    if (!(await existingRuns(read, tenant_id, [run_id])).has(run_id)) throw new ApiError("run_not_found");
    return Promise.all((await queuesOfRun(read, tenant_id, run_id)).map((row) => toQueue(read, row)));
  },

  populate: (caller: Caller, queue_id: string, session_ids: string[]): Promise<{ added: number }> =>
    write(async (tx) => {
      const queue = await lockAnnotationQueue(tx, caller, queue_id);
      return { added: await addSessionRuns(tx, caller, queue, session_ids) };
    }),
});

async function datasetId(tx: Tx, caller: Caller, id: string | null | undefined): Promise<string | null> {
  return id ? (await getDataset(tx, caller, id)).dataset_id : null;
}

/** Returns the ID of the default dataset; null if there is none or it was deleted. */
async function existingDataset(tx: Tx, { tenant_id, default_dataset_id }: AnnotationQueueRow): Promise<string | null> {
  return (default_dataset_id && (await findDataset(tx, tenant_id, default_dataset_id))?.dataset_id) || null;
}

const withoutConfig = ({ feedback_config: _, ...item }: RubricItem): RubricItem => item as RubricItem;

const ALL_CONFIGS = { sort_by_desc: true, offset: 0 };

/** Returns the rubric items, each with the feedback config of its key, or null if the key has no config. */
async function rubricOf(tx: Tx, { tenant_id, rubric_items }: AnnotationQueueRow): Promise<RubricItem[] | null> {
  const items = parseJson<RubricItem[]>(rubric_items);
  if (!items || items.length === 0) return items;
  const key = [...new Set(items.map(({ feedback_key }) => feedback_key))];
  const rows = await listConfigs(tx, tenant_id, { key, limit: key.length, ...ALL_CONFIGS });
  const configs = new Map(rows.map((row) => [row.feedback_key, toKeyConfig(row)]));
  return items.map((item) => ({ ...item, feedback_config: configs.get(item.feedback_key) ?? null }));
}

const toQueue = async (tx: Tx, row: AnnotationQueueRow): Promise<AnnotationQueue> => ({
  id: row.queue_id,
  tenant_id: row.tenant_id,
  name: row.name,
  description: row.description,
  queue_type: "single",
  default_dataset: await existingDataset(tx, row),
  num_reviewers_per_item: row.num_reviewers_per_item,
  metadata: parseJson(row.metadata),
  enable_reservations: false,
  reservation_minutes: null,
  reviewer_access_mode: "any",
  assigned_reviewers: [],
  run_rule_id: null,
  source_rule_id: null,
  created_at: isoOfMilliseconds(row.created_at),
  updated_at: isoOfMilliseconds(row.updated_at),
  rubric_instructions: row.rubric_instructions,
  rubric_items: await rubricOf(tx, row),
});
