import type { Caller } from "../../platform/contract/caller.ts";
import { type Database, readNow, type Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import { isoOfMicroseconds } from "../../platform/lib/times.ts";
import type {
  AddedRun,
  ItemStatus,
  ItemUpdate,
  QueueCountQuery,
  QueueItem,
  QueueItemsQuery,
  QueueRun,
  QueueRunsDelete,
  QueueRunsQuery,
} from "../contract/annotation-queues/items.ts";
import type { ExperimentRun } from "../contract/runs.ts";
import { getAnnotationQueue, getExperiment, lockAnnotationQueue } from "../lookups.ts";
import { runOperations } from "../sessions/runs.ts";
import {
  completedBy,
  countItems,
  deleteItems,
  existingRuns,
  type FullQueueItem,
  type ItemPosition,
  insertItems,
  listItems,
  putReview,
  queuedRuns,
  rootRunsOf,
  updateItem,
} from "../storage/annotation-queues/items.ts";
import { type AnnotationQueueRow, queueOfItem } from "../storage/annotation-queues/queues.ts";
import { lockExperiments } from "../storage/experiments.ts";
import { sessionsOfTraces } from "../storage/traces/trace-retention.ts";

/** Maximum number of runs per page, as in `POST /runs/query`. */
const MAX_RUNS = 100;

/** Operations on the runs of annotation queues and on the caller's reviews. */
export const queueItemOperations = (database: Database) => {
  const { read, write } = database;
  const runs = runOperations(database);

  /** Returns the runs of the items, in the order of the items. Omits items whose run is not found. */
  async function withRuns(caller: Caller, items: FullQueueItem[], base_url: string): Promise<QueueRun[]> {
    if (items.length === 0) return [];
    const ids = items.map(({ run_id }) => run_id);
    const found = await runs.query(caller, { id: ids, limit: ids.length, order: "desc" }, base_url);
    const byId = new Map((found.runs as ExperimentRun[]).map((run) => [run.id, run]));
    const reviewers = await reviewersOf(read, items);
    return items.flatMap((item) => {
      const run = byId.get(item.run_id);
      return run ? [{ ...run, queue_run_id: item.item_id, ...reviewOf(item, reviewers) }] : [];
    });
  }

  return {
    /** @param base_url the address of this API as the client sees it, for the links to attachments */
    async listRuns(caller: Caller, queue_id: string, query: QueueRunsQuery, base_url: string) {
      const { status, archived, ...page } = query;
      const queue = await getAnnotationQueue(read, caller, queue_id);
      const section = status ?? (archived === true ? "archived" : undefined);
      const limit = Math.min(page.limit, MAX_RUNS);
      const items = await listItems(read, queue, caller.user_id, { section }, { ...page, limit });
      return withRuns(caller, items, base_url);
    },

    async readRunAt(caller: Caller, queue_id: string, index: number, base_url: string): Promise<QueueRun> {
      const queue = await getAnnotationQueue(read, caller, queue_id);
      const filter = { section: "needs_my_review" } as const;
      const items = await listItems(read, queue, caller.user_id, filter, { limit: 1, offset: index });
      const [run] = await withRuns(caller, items, base_url);
      if (!run) throw new ApiError("annotation_queue_item_not_found");
      return run;
    },

    async list(caller: Caller, queue_id: string, { status, item_type, page_size, cursor }: QueueItemsQuery) {
      const queue = await getAnnotationQueue(read, caller, queue_id);
      if (item_type === "THREAD") return { items: [] };
      const filter = { section: status, after: cursor === undefined ? undefined : readCursor(cursor) };
      const rows = await listItems(read, queue, caller.user_id, filter, { limit: page_size + 1, offset: 0 });
      const page = rows.slice(0, page_size);
      const last = page.at(-1);
      return {
        items: await toItems(read, queue, page),
        ...(rows.length > page_size && last && { next_cursor: cursorOf(last) }),
      };
    },

    async count(
      caller: Caller,
      queue_id: string,
      { status, start_time, end_time }: Partial<QueueCountQuery>,
    ): Promise<number> {
      const queue = await getAnnotationQueue(read, caller, queue_id);
      const section = status === "all" ? undefined : (status ?? "needs_my_review");
      const bounds = section === "archived" ? { archived_from_us: start_time, archived_to_us: end_time } : {};
      return countItems(read, queue, caller.user_id, { section, ...bounds });
    },

    async placement(caller: Caller, queue_id: string, item_id: string) {
      const queue = await getAnnotationQueue(read, caller, queue_id);
      const item = await getItem(read, caller, queue, item_id);
      const { section } = item;
      const position = await countItems(read, queue, caller.user_id, { section, before: item });
      return { item_type: "RUN" as const, section, position };
    },

    /** Runs that are already in the queue keep their position. */
    add: (caller: Caller, queue_id: string, added: AddedRun[]): Promise<QueueItem[]> =>
      write(async (tx) => {
        const queue = await lockAnnotationQueue(tx, caller, queue_id);
        const run_ids = added.map(({ run_id }) => run_id);
        // The retention of traces locks the session of the root, so that it does not delete a run that the queue is about to keep.
        await lockExperiments(tx, await sessionsOfTraces(tx, caller.tenant_id, run_ids));
        const existing = await existingRuns(tx, caller.tenant_id, run_ids);
        const unknown = run_ids.find((id) => !existing.has(id));
        if (unknown) throw new ApiError("queued_run_not_found", { run_id: unknown });
        await addRuns(tx, queue, added);
        const items = await listItems(tx, queue, caller.user_id, { run_ids }, { limit: run_ids.length, offset: 0 });
        return toItems(tx, queue, items);
      }),

    update: (caller: Caller, queue_id: string, id: string, body: ItemUpdate): Promise<QueueItem> =>
      write(async (tx) => {
        const queue = await getAnnotationQueue(tx, caller, queue_id);
        const { item_no } = await getItem(tx, caller, queue, id);
        await updateItem(tx, item_no, { added_us: body.added_at, last_reviewed_us: body.last_reviewed_time });
        const [item] = await toItems(tx, queue, [await getItem(tx, caller, queue, id)]);
        return item as QueueItem;
      }),

    /** `run_ids` and `exclude_run_ids` may contain the IDs of items or of their runs. */
    delete: (caller: Caller, queue_id: string, { delete_all, run_ids, exclude_run_ids }: QueueRunsDelete) =>
      write(async (tx) => {
        const { queue_no } = await lockAnnotationQueue(tx, caller, queue_id);
        const chosen = delete_all ? { except: exclude_run_ids ?? [] } : { only: run_ids ?? [] };
        return { deleted: await deleteItems(tx, queue_no, chosen) };
      }),

    deleteOne: (caller: Caller, queue_id: string, id: string): Promise<void> =>
      write(async (tx) => {
        const { queue_no } = await lockAnnotationQueue(tx, caller, queue_id);
        if ((await deleteItems(tx, queue_no, { only: [id] })) === 0)
          throw new ApiError("annotation_queue_item_not_found");
      }),

    setStatus: (caller: Caller, item_id: string, { status = null, override_added_at }: ItemStatus) =>
      write(async (tx) => {
        const queue = await queueOfItem(tx, caller.tenant_id, item_id);
        if (!queue) throw new ApiError("annotation_queue_item_not_found");
        const { item_no } = await getItem(tx, caller, queue, item_id);
        const now_us = (await readNow(tx)) * 1000;
        const isComplete = status === "completed";
        const added_us = override_added_at ?? null;
        const completed_us = isComplete ? now_us : null;
        await putReview(tx, { item_no, user_id: caller.user_id, status, added_us, completed_us });
        if (isComplete) await updateItem(tx, item_no, { last_reviewed_us: now_us });
        const { section } = await getItem(tx, caller, queue, item_id);
        return {
          queue_item_id: item_id,
          status,
          override_added_at: added_us === null ? null : isoOfMicroseconds(added_us),
          is_archived: section === "archived",
        };
      }),
  };
};

/** Adds the root runs of sessions. @returns the number of runs that the queue did not contain */
export async function addSessionRuns(
  tx: Tx,
  caller: Caller,
  queue: AnnotationQueueRow,
  session_ids: string[],
): Promise<number> {
  const numbers: number[] = [];
  for (const id of session_ids) numbers.push((await getExperiment(tx, caller, id)).experiment_no);
  await lockExperiments(tx, numbers);
  const run_ids = numbers.length === 0 ? [] : await rootRunsOf(tx, numbers);
  return addRuns(
    tx,
    queue,
    run_ids.map((run_id) => ({ run_id })),
  );
}

async function addRuns(tx: Tx, { queue_no, tenant_id }: AnnotationQueueRow, runs: AddedRun[]): Promise<number> {
  const queued = await queuedRuns(tx, queue_no);
  const added = new Map(runs.filter(({ run_id }) => !queued.has(run_id)).map((run) => [run.run_id, run]));
  const added_us = (await readNow(tx)) * 1000;
  const rows = [...added.values()].map(({ run_id, source_proposed_example_id }) => ({
    queue_no,
    tenant_id,
    item_id: newId(),
    run_id,
    source_proposed_example_id: source_proposed_example_id ?? null,
    added_us,
    last_reviewed_us: null,
  }));
  await insertItems(tx, rows);
  return rows.length;
}

/** @param id the id of the item or of its run */
async function getItem(tx: Tx, { user_id }: Caller, queue: AnnotationQueueRow, id: string): Promise<FullQueueItem> {
  const [item] = await listItems(tx, queue, user_id, { id }, { limit: 1, offset: 0 });
  if (!item) throw new ApiError("annotation_queue_item_not_found");
  return item;
}

const reviewersOf = (tx: Tx, items: FullQueueItem[]): Promise<Map<number, string[]>> =>
  completedBy(
    tx,
    items.map(({ item_no }) => item_no),
  );

const reviewOf = (item: FullQueueItem, reviewers: Map<number, string[]>) => ({
  added_at: isoOfMicroseconds(item.added_us),
  effective_added_at: isoOfMicroseconds(item.effective_us),
  last_reviewed_time: item.last_reviewed_us === null ? null : isoOfMicroseconds(item.last_reviewed_us),
  completed_by: reviewers.get(item.item_no) ?? [],
  reserved_by: [],
  source_proposed_example_id: item.source_proposed_example_id,
});

async function toItems(tx: Tx, { queue_id }: AnnotationQueueRow, items: FullQueueItem[]): Promise<QueueItem[]> {
  const reviewers = await reviewersOf(tx, items);
  return items.map((item) => ({
    id: item.item_id,
    item_type: "RUN",
    queue_id,
    run_id: item.run_id,
    project_id: item.experiment_id,
    start_time: isoOfMicroseconds(item.start_us),
    ...reviewOf(item, reviewers),
  }));
}

const cursorOf = ({ effective_us, item_no }: ItemPosition): string =>
  Buffer.from(JSON.stringify([effective_us, item_no])).toString("base64url");

function readCursor(cursor: string): ItemPosition {
  try {
    const [effective_us, item_no] = JSON.parse(Buffer.from(cursor, "base64url").toString());
    if (Number.isSafeInteger(effective_us) && Number.isSafeInteger(item_no)) return { effective_us, item_no };
  } catch {
    // The error below reports the invalid cursor.
  }
  throw new ApiError("bad_cursor");
}
