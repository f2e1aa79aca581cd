import { type Insertable, sql } from "kysely";
import { nowMs, type Schema, type Tx } from "../../../platform/database/database.ts";
import type { QueueQuery } from "../../contract/annotation-queues/queues.ts";

declare module "../../../platform/database/database.ts" {
  interface Schema {
    annotation_queues: WithSequence<AnnotationQueueRow, "queue_no">;
    annotation_queue_items: WithSequence<QueueItemRow, "item_no">;
    annotation_queue_reviews: QueueReviewRow;
  }
}

type WithSequence<Row, Key extends keyof Row> = Omit<Row, Key> & { [K in Key]: import("kysely").Generated<Row[K]> };

export interface AnnotationQueueRow {
  queue_no: number;
  tenant_id: string;
  queue_id: string;
  name: string;
  description: string | null;
  rubric_instructions: string | null;
  /** JSON list. */
  rubric_items: string | null;
  default_dataset_id: string | null;
  /** The number of users who complete an item before it is archived. */
  num_reviewers_per_item: number;
  /** JSON. */
  metadata: string | null;
  created_at: number;
  updated_at: number;
}

export interface QueueItemRow {
  /** Ascending in the order in which the items were added. */
  item_no: number;
  queue_no: number;
  tenant_id: string;
  item_id: string;
  /** Items whose run was deleted may still be stored, but are not returned. */
  run_id: string;
  source_proposed_example_id: string | null;
  added_us: number;
  last_reviewed_us: number | null;
}

/** The review of an item by a user. */
export interface QueueReviewRow {
  item_no: number;
  user_id: string;
  status: string | null;
  /** Replaces `added_us` of the item when the items are sorted for this user. */
  added_us: number | null;
  completed_us: number | null;
}

const queues = (tx: Tx, tenant_id: string) =>
  tx.k.selectFrom("annotation_queues").selectAll().where("tenant_id", "=", tenant_id);

/** @returns undefined when the id is taken */
export const insertQueue = (
  tx: Tx,
  queue: Omit<AnnotationQueueRow, "queue_no" | "created_at" | "updated_at">,
): Promise<AnnotationQueueRow | undefined> =>
  tx.first(
    tx.k
      .insertInto("annotation_queues")
      .values({ ...queue, created_at: nowMs, updated_at: nowMs } as Insertable<Schema["annotation_queues"]>)
      .onConflict((conflict) => conflict.doNothing())
      .returningAll(),
  );

export const findQueue = (tx: Tx, tenant_id: string, queue_id: string): Promise<AnnotationQueueRow | undefined> =>
  tx.first(queues(tx, tenant_id).where("queue_id", "=", queue_id));

/** Locks the queue until the transaction ends. Required to add items. */
export const lockQueue = (tx: Tx, tenant_id: string, queue_id: string): Promise<AnnotationQueueRow | undefined> =>
  tx.first(tx.dialect.forUpdate(queues(tx, tenant_id).where("queue_id", "=", queue_id)));

export function listQueues(tx: Tx, tenant_id: string, filter: QueueQuery): Promise<AnnotationQueueRow[]> {
  const { ids, name, name_contains, dataset_id, sort_by, sort_by_desc, limit, offset } = filter;
  let query = queues(tx, tenant_id);
  if (ids) query = query.where("queue_id", "in", ids);
  if (name !== undefined) query = query.where("name", "=", name);
  if (name_contains) query = query.where(tx.dialect.containsText(sql.ref("name"), name_contains));
  if (dataset_id) query = query.where("default_dataset_id", "=", dataset_id);
  const direction = sort_by_desc ? "desc" : "asc";
  return tx.all(query.orderBy(sort_by, direction).orderBy("queue_no", direction).limit(limit).offset(offset));
}

export const queuesOfRun = (tx: Tx, tenant_id: string, run_id: string): Promise<AnnotationQueueRow[]> =>
  tx.all(
    queues(tx, tenant_id)
      .where((q) =>
        q.exists(
          q
            .selectFrom("annotation_queue_items as i")
            .whereRef("i.queue_no", "=", "annotation_queues.queue_no")
            .where("i.run_id", "=", run_id)
            .select("i.item_no"),
        ),
      )
      .orderBy("created_at")
      .orderBy("queue_no"),
  );

/** Updates a queue and the time of its last change. Undefined fields are not changed. */
export const updateQueue = (
  tx: Tx,
  queue_no: number,
  changes: { [Name in keyof AnnotationQueueRow]?: AnnotationQueueRow[Name] | undefined },
): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("annotation_queues")
      .set({ ...changes, updated_at: nowMs })
      .where("queue_no", "=", queue_no),
  );

/** Deletes a queue. The caller deletes its items first. */
export const deleteQueue = (tx: Tx, queue_no: number): Promise<number> =>
  tx.run(tx.k.deleteFrom("annotation_queues").where("queue_no", "=", queue_no));

/** The queue of an item. */
export const queueOfItem = (tx: Tx, tenant_id: string, item_id: string): Promise<AnnotationQueueRow | undefined> =>
  tx.first(
    queues(tx, tenant_id).where("queue_no", "=", (q) =>
      q
        .selectFrom("annotation_queue_items")
        .select("queue_no")
        .where("annotation_queue_items.tenant_id", "=", tenant_id)
        .where("item_id", "=", item_id),
    ),
  );
