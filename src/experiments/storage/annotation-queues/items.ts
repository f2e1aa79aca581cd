import { sql } from "kysely";
import type { Tx } from "../../../platform/database/database.ts";
import { byIds, insertMany } from "../../../platform/database/insert-many.ts";
import type { QueueSection } from "../../contract/annotation-queues/items.ts";
import type { AnnotationQueueRow, QueueItemRow, QueueReviewRow } from "./queues.ts";

/** An item with data of its run, and its order and section for one user. */
export interface FullQueueItem extends QueueItemRow {
  experiment_id: string;
  start_us: number;
  /** The time by which the items of the user are sorted. */
  effective_us: number;
  section: QueueSection;
}

interface ItemFilter {
  section?: QueueSection | undefined;
  /** The id of the item or of its run. */
  id?: string | undefined;
  run_ids?: string[] | undefined;
  /** Exclusive bounds of the time when the item was archived. */
  archived_from_us?: number | undefined;
  archived_to_us?: number | undefined;
  /** Exclusive bounds of the position of the item. */
  before?: ItemPosition | undefined;
  after?: ItemPosition | undefined;
}

export type ItemPosition = Pick<FullQueueItem, "effective_us" | "item_no">;

/** Selects the items of queues, except items whose run was deleted, with their order and section for the user. */
function itemsOf(tx: Tx, tenant_id: string, queue_numbers: number[], user_id: string) {
  const completed = sql<number>`(select count(*) from annotation_queue_reviews r
    where r.item_no = i.item_no and r.status = 'completed')`;
  return tx.k.selectFrom((k) =>
    k
      .selectFrom("annotation_queue_items as i")
      .innerJoin("annotation_queues as q", "q.queue_no", "i.queue_no")
      .leftJoin("annotation_queue_reviews as mine", (join) =>
        join.onRef("mine.item_no", "=", "i.item_no").on("mine.user_id", "=", user_id),
      )
      .leftJoin("trace_runs as t", (join) =>
        join.onRef("t.tenant_id", "=", "i.tenant_id").onRef("t.run_id", "=", "i.run_id"),
      )
      .leftJoin("experiment_runs as e", (join) =>
        join.onRef("e.tenant_id", "=", "i.tenant_id").onRef("e.run_id", "=", "i.run_id"),
      )
      .innerJoin("experiments as x", (join) =>
        join.on("x.experiment_no", "=", sql<number>`coalesce(t.experiment_no, e.experiment_no)`),
      )
      .selectAll("i")
      .select([
        "x.experiment_id",
        sql<number>`coalesce(t.start_us, e.start_us)`.as("start_us"),
        sql<number>`coalesce(mine.added_us, i.added_us)`.as("effective_us"),
        sql<number | null>`(select max(completed_us) from annotation_queue_reviews r
            where r.item_no = i.item_no and r.status = 'completed')`.as("archived_us"),
        sql<QueueSection>`case when ${completed} >= q.num_reviewers_per_item then 'archived'
            when mine.status = 'completed' then 'needs_others_review' else 'needs_my_review' end`.as("section"),
      ])
      .where("i.queue_no", "in", queue_numbers)
      .where("i.tenant_id", "=", tenant_id)
      .as("item"),
  );
}

function matching(filter: ItemFilter) {
  const { section, id, run_ids, archived_from_us, archived_to_us, before, after } = filter;
  const position = ({ effective_us, item_no }: ItemPosition) => sql`(${effective_us}, ${item_no})`;
  const conditions = [
    sql<boolean>`1 = 1`,
    ...(section ? [sql<boolean>`section = ${section}`] : []),
    ...(id ? [sql<boolean>`(item_id = ${id} or run_id = ${id})`] : []),
    ...(run_ids ? [sql<boolean>`run_id in (${sql.join(run_ids.length > 0 ? run_ids : [""])})`] : []),
    ...(archived_from_us === undefined ? [] : [sql<boolean>`archived_us > ${archived_from_us}`]),
    ...(archived_to_us === undefined ? [] : [sql<boolean>`archived_us < ${archived_to_us}`]),
    ...(before ? [sql<boolean>`(effective_us, item_no) < ${position(before)}`] : []),
    ...(after ? [sql<boolean>`(effective_us, item_no) > ${position(after)}`] : []),
  ];
  return sql<boolean>`(${sql.join(conditions, sql` and `)})`;
}

export const listItems = (
  tx: Tx,
  queue: AnnotationQueueRow,
  user_id: string,
  filter: ItemFilter,
  page: { limit: number; offset: number },
): Promise<FullQueueItem[]> =>
  tx.all(
    itemsOf(tx, queue.tenant_id, [queue.queue_no], user_id)
      .selectAll()
      .where(matching(filter))
      .orderBy("effective_us")
      .orderBy("item_no")
      .limit(page.limit)
      .offset(page.offset),
  ) as Promise<FullQueueItem[]>;

export async function countItems(
  tx: Tx,
  queue: AnnotationQueueRow,
  user_id: string,
  filter: ItemFilter,
): Promise<number> {
  const query = itemsOf(tx, queue.tenant_id, [queue.queue_no], user_id).select((i) => i.fn.countAll<number>().as("n"));
  return Number((await tx.first(query.where(matching(filter))))?.n ?? 0);
}

/** Counts the items by queue and section. */
export async function countSections(
  tx: Tx,
  tenant_id: string,
  queue_numbers: number[],
  user_id: string,
): Promise<Map<number, Record<QueueSection, number>>> {
  const none = { needs_my_review: 0, needs_others_review: 0, archived: 0 };
  const counts = new Map(queue_numbers.map((queue_no) => [queue_no, { ...none }]));
  if (queue_numbers.length === 0) return counts;
  const rows = await tx.all(
    itemsOf(tx, tenant_id, queue_numbers, user_id)
      .select((i) => ["queue_no", "section", i.fn.countAll<number>().as("n")])
      .groupBy(["queue_no", "section"]),
  );
  for (const { queue_no, section, n } of rows) Object.assign(counts.get(queue_no) ?? {}, { [section]: Number(n) });
  return counts;
}

/** Counts the items of each queue, except those whose run was deleted. */
export async function queueSizes(tx: Tx, queue_numbers: number[]): Promise<Map<number, number>> {
  if (queue_numbers.length === 0) return new Map();
  const stored = (table: string) => sql`exists (select 1 from ${sql.table(table)} r
    where r.tenant_id = i.tenant_id and r.run_id = i.run_id)`;
  const rows = await tx.all(
    tx.k
      .selectFrom("annotation_queue_items as i")
      .select((i) => ["i.queue_no", i.fn.countAll<number>().as("n")])
      .where("i.queue_no", "in", queue_numbers)
      .where(sql<boolean>`(${stored("trace_runs")} or ${stored("experiment_runs")})`)
      .groupBy("i.queue_no"),
  );
  return new Map(rows.map(({ queue_no, n }) => [queue_no, Number(n)]));
}

/** The users who completed items, by item. */
export async function completedBy(tx: Tx, items: number[]): Promise<Map<number, string[]>> {
  const rows = await byIds(items, (batch) =>
    tx.all(
      tx.k
        .selectFrom("annotation_queue_reviews")
        .select(["item_no", "user_id"])
        .where("item_no", "in", batch)
        .where("status", "=", "completed")
        .orderBy("user_id"),
    ),
  );
  const byItem = Map.groupBy(rows, ({ item_no }) => item_no);
  return new Map([...byItem].map(([item_no, reviews]) => [item_no, reviews.map(({ user_id }) => user_id)]));
}

/** Returns those of the given ids that belong to existing runs. */
export async function existingRuns(tx: Tx, tenant_id: string, run_ids: string[]): Promise<Set<string>> {
  const read = (table: "trace_runs" | "experiment_runs") =>
    byIds(run_ids, (batch) =>
      tx.all(tx.k.selectFrom(table).select("run_id").where("tenant_id", "=", tenant_id).where("run_id", "in", batch)),
    );
  const rows = [...(await read("trace_runs")), ...(await read("experiment_runs"))];
  return new Set(rows.map(({ run_id }) => run_id));
}

/** The root runs of sessions, traced and uploaded, sorted by start time. */
export async function rootRunsOf(tx: Tx, experiment_numbers: number[]): Promise<string[]> {
  const rows = await tx.all(
    tx.k
      .selectFrom("trace_runs")
      .select(["run_id", "start_us"])
      .where("experiment_no", "in", experiment_numbers)
      .where("is_root", "=", 1)
      .unionAll(
        tx.k
          .selectFrom("experiment_runs")
          .select(["run_id", "start_us"])
          .where("experiment_no", "in", experiment_numbers)
          .where("is_traced", "=", 0),
      )
      .orderBy("start_us")
      .orderBy("run_id"),
  );
  return rows.map(({ run_id }) => run_id);
}

/** Adds items. The caller has locked the queue and omits runs that the queue already contains. */
export const insertItems = (tx: Tx, items: Omit<QueueItemRow, "item_no">[]): Promise<void> =>
  insertMany(tx, "annotation_queue_items", items);

export async function queuedRuns(tx: Tx, queue_no: number): Promise<Set<string>> {
  const query = tx.k.selectFrom("annotation_queue_items").select("run_id").where("queue_no", "=", queue_no);
  return new Set((await tx.all(query)).map(({ run_id }) => run_id));
}

/** Deletes items by ids of items or runs: those in `only` or, without `only`, those not in `except`. Returns their number. */
export async function deleteItems(
  tx: Tx,
  queue_no: number,
  { only, except }: { only?: string[]; except?: string[] },
): Promise<number> {
  const list = (ids: string[]) => sql.join(ids.length > 0 ? ids : [""]);
  const chosen = only
    ? sql<boolean>`(item_id in (${list(only)}) or run_id in (${list(only)}))`
    : sql<boolean>`item_id not in (${list(except ?? [])}) and run_id not in (${list(except ?? [])})`;
  const items = sql`(select item_no from annotation_queue_items where queue_no = ${queue_no} and ${chosen})`;
  await tx.run(sql`delete from annotation_queue_reviews where item_no in ${items}`.compile(tx.k));
  return tx.run(tx.k.deleteFrom("annotation_queue_items").where("queue_no", "=", queue_no).where(chosen));
}

/** Deletes the items of all runs of a session. The caller deletes the runs afterwards. */
export async function deleteItemsOfExperiment(tx: Tx, experiment_no: number): Promise<void> {
  for (const table of ["trace_runs", "experiment_runs"]) {
    const items = sql`(select i.item_no from annotation_queue_items i join ${sql.table(table)} r
      on r.tenant_id = i.tenant_id and r.run_id = i.run_id where r.experiment_no = ${experiment_no})`;
    for (const from of ["annotation_queue_reviews", "annotation_queue_items"])
      await tx.run(sql`delete from ${sql.table(from)} where item_no in ${items}`.compile(tx.k));
  }
}

export const updateItem = (
  tx: Tx,
  item_no: number,
  changes: { added_us?: number | undefined; last_reviewed_us?: number | undefined },
): Promise<number> =>
  changes.added_us === undefined && changes.last_reviewed_us === undefined
    ? Promise.resolve(0)
    : tx.run(tx.k.updateTable("annotation_queue_items").set(changes).where("item_no", "=", item_no));

export const putReview = (tx: Tx, { item_no, user_id, ...review }: QueueReviewRow): Promise<number> =>
  tx.run(
    tx.k
      .insertInto("annotation_queue_reviews")
      .values({ item_no, user_id, ...review })
      .onConflict((conflict) => conflict.columns(["item_no", "user_id"]).doUpdateSet(review)),
  );
