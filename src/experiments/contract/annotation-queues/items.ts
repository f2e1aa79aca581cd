import { createRoute, z } from "@hono/zod-openapi";
import {
  jsonBody,
  jsonResponse,
  nullable,
  optional,
  queryBoolean,
  withDefault,
} from "../../../platform/contract/fields.ts";
import { nullableTime, paging, refused, time, timeText, uuidOrHex } from "../fields.ts";
import { deletedResponse, errors } from "../responses.ts";
import { ExperimentRun } from "../runs.ts";
import { queueParams } from "./queues.ts";

/** A run in a queue. The caller's view of the queue is sorted by `effective_added_at`. */
const QueueItem = z
  .object({
    id: z.string(),
    item_type: z.literal("RUN"),
    queue_id: z.string(),
    run_id: z.string(),
    project_id: z.string(),
    start_time: timeText,
    added_at: timeText,
    effective_added_at: timeText,
    last_reviewed_time: nullableTime,
    completed_by: z
      .array(z.string())
      .openapi({ description: "IDs of the users who have completed their review of the item." }),
    reserved_by: z.array(z.string()).max(0),
    source_proposed_example_id: z.string().nullable(),
  })
  .openapi("AnnotationQueueItem");
export type QueueItem = z.output<typeof QueueItem>;

const QueueRun = ExperimentRun.extend({
  queue_run_id: z.string(),
  added_at: timeText,
  effective_added_at: timeText,
  last_reviewed_time: nullableTime,
  completed_by: z.array(z.string()),
  reserved_by: z.array(z.string()),
  source_proposed_example_id: z.string().nullable(),
}).openapi("RunWithAnnotationQueueInfo");
export type QueueRun = z.output<typeof QueueRun>;

const addedRun = z.object({ run_id: uuidOrHex, source_proposed_example_id: optional(uuidOrHex) });
export type AddedRun = z.output<typeof addedRun>;
const MAX_ADDED = 1000;
const addedRuns = z
  .array(z.preprocess((run) => (typeof run === "string" ? { run_id: run } : run), addedRun))
  .max(MAX_ADDED);

const addedItem = addedRun.extend({
  item_type: optional(z.string().refine((type) => type === "RUN", 'must be "RUN": only runs can be added to a queue')),
});

const section = z.enum(["needs_my_review", "needs_others_review", "archived"]);
export type QueueSection = z.output<typeof section>;

/** Version 1 of the API uses the status `completed` for archived items. */
const status = z
  .enum(["needs_my_review", "needs_others_review", "completed"])
  .transform((text): QueueSection => (text === "completed" ? "archived" : text))
  .openapi({ type: "string" });

const RunsQuery = z.object({
  status: status.optional(),
  archived: queryBoolean.optional(),
  limit: paging.limit,
  offset: paging.offset,
});
export type QueueRunsQuery = z.output<typeof RunsQuery>;

const unsupportedItemFilters = {
  min_start_time: refused("is not supported"),
  max_start_time: refused("is not supported"),
  agreement: refused("is not supported: a run has one review of each user"),
  has_unresolved_keys: refused("is not supported: a run has one review of each user"),
};

const ItemsQuery = z.object({
  ...unsupportedItemFilters,
  status: section,
  item_type: z.enum(["RUN", "THREAD"]).optional(),
  direction: z
    .string()
    .refine((direction) => direction === "forward", 'must be "forward": other directions are not supported')
    .optional(),
  page_size: z.coerce.number().int().min(1).max(100).default(20),
  cursor: z.string().optional(),
});
export type QueueItemsQuery = z.output<typeof ItemsQuery>;

const CountQuery = z.object({
  ...unsupportedItemFilters,
  status: z.union([section, z.literal("all")]),
  start_time: time
    .optional()
    .describe(
      "Counts only items that were archived after this time. The parameter is ignored if `status` has a value other than `archived`.",
    ),
  end_time: time
    .optional()
    .describe(
      "Counts only items that were archived before this time. The parameter is ignored if `status` has a value other than `archived`.",
    ),
});
export type QueueCountQuery = z.output<typeof CountQuery>;

/** The caller's review of an item. A null `status` withdraws the review, so that the caller sees the item again. */
const ItemStatus = z
  .object({
    status: nullable(z.enum(["viewed", "completed"])).optional(),
    override_added_at: optional(time).describe(
      "The item's `effective_added_at` for the caller. It determines the item's position in the caller's queue.",
    ),
  })
  .openapi("AnnotationQueueItemStatus");
export type ItemStatus = z.output<typeof ItemStatus>;

const ItemUpdate = z.object({ added_at: optional(time), last_reviewed_time: optional(time) });
export type ItemUpdate = z.output<typeof ItemUpdate>;

const RunsDelete = z.object({
  delete_all: withDefault(z.boolean(), false),
  run_ids: optional(z.array(uuidOrHex).max(MAX_ADDED)),
  exclude_run_ids: optional(z.array(uuidOrHex).max(MAX_ADDED)),
});
export type QueueRunsDelete = z.output<typeof RunsDelete>;

const size = z.object({ size: z.int() });
const changedStatus = jsonResponse(
  z.object({
    queue_item_id: z.string(),
    status: z.string().nullable(),
    override_added_at: nullableTime,
    is_archived: z.boolean(),
  }),
  "The caller's review status for the item.",
);

const itemParams = queueParams.extend({ item_id: uuidOrHex });
const runParams = queueParams.extend({
  queue_run_id: uuidOrHex.openapi({ description: "The ID of the item or of its run." }),
});

const QUEUE = "/annotation-queues/{queue_id}";
const ITEMS = "/platform/annotation-queues/{queue_id}/items";

export const queueItemRoutes = {
  addRuns: createRoute({
    method: "post",
    path: `${QUEUE}/runs`,
    operationId: "add_runs_to_annotation_queue",
    summary: "Add runs to a queue. Runs that are already in the queue keep their position.",
    request: { params: queueParams, body: jsonBody(addedRuns) },
    responses: { 200: jsonResponse(z.array(QueueItem), "The items of these runs."), ...errors(404) },
  }),
  addRunsByKey: createRoute({
    method: "post",
    path: `${QUEUE}/runs/by-key`,
    operationId: "add_runs_to_annotation_queue_by_key",
    summary:
      "Add runs to a queue. Only `run_id` is used to identify a run; a session ID or start time in the request is ignored.",
    request: { params: queueParams, body: jsonBody(addedRuns) },
    responses: { 200: jsonResponse(z.array(QueueItem), "The items of these runs."), ...errors(404) },
  }),
  listRuns: createRoute({
    method: "get",
    path: `${QUEUE}/runs`,
    operationId: "list_runs_of_annotation_queue",
    summary: "List the runs of a queue in review order, at most 100 per page",
    request: { params: queueParams, query: RunsQuery },
    responses: { 200: jsonResponse(z.array(QueueRun), "A page of runs."), ...errors(404) },
  }),
  readRunAt: createRoute({
    method: "get",
    path: `${QUEUE}/run/{index}`,
    operationId: "read_run_of_annotation_queue",
    summary: "Get the run at a zero-based position among the runs that need the caller's review",
    request: { params: queueParams.extend({ index: z.coerce.number().int().min(0).max(1_000_000_000) }) },
    responses: { 200: jsonResponse(QueueRun, "The run."), ...errors(404) },
  }),
  updateRun: createRoute({
    method: "patch",
    path: `${QUEUE}/runs/{queue_run_id}`,
    operationId: "update_run_of_annotation_queue",
    summary: "Update the `added_at` or `last_reviewed_time` of an item",
    request: { params: runParams, body: jsonBody(ItemUpdate) },
    responses: { 200: jsonResponse(QueueItem, "The item."), ...errors(404) },
  }),
  deleteRun: createRoute({
    method: "delete",
    path: `${QUEUE}/runs/{queue_run_id}`,
    operationId: "delete_run_of_annotation_queue",
    summary: "Remove a run from a queue. The run is not deleted.",
    request: { params: runParams },
    responses: { 200: deletedResponse("The run was removed."), ...errors(404) },
  }),
  deleteRuns: createRoute({
    method: "post",
    path: `${QUEUE}/runs/delete`,
    operationId: "delete_runs_of_annotation_queue",
    summary:
      "Remove the runs in `run_ids` from a queue. With `delete_all`, remove all runs except those in `exclude_run_ids`",
    request: { params: queueParams, body: jsonBody(RunsDelete) },
    responses: { 200: deletedResponse("The runs were removed."), ...errors(404) },
  }),
  readSize: createRoute({
    method: "get",
    path: `${QUEUE}/size`,
    operationId: "read_annotation_queue_size",
    summary: "Count the runs with a given review status, by default those that need the caller's review",
    request: { params: queueParams, query: z.object({ status: status.optional() }) },
    responses: { 200: jsonResponse(size, "The number of runs."), ...errors(404) },
  }),
  readTotalSize: createRoute({
    method: "get",
    path: `${QUEUE}/total_size`,
    operationId: "read_annotation_queue_total_size",
    summary: "Count all runs of a queue",
    request: { params: queueParams },
    responses: { 200: jsonResponse(size, "The number of runs."), ...errors(404) },
  }),
  readTotalArchived: createRoute({
    method: "get",
    path: `${QUEUE}/total_archived`,
    operationId: "read_annotation_queue_total_archived",
    summary: "Count the fully reviewed runs of a queue",
    request: { params: queueParams, query: CountQuery.omit({ status: true }) },
    responses: { 200: jsonResponse(size, "The number of runs."), ...errors(404) },
  }),
  setRunStatus: createRoute({
    method: "post",
    path: "/annotation-queues/status/{item_id}",
    operationId: "set_annotation_queue_run_status",
    summary: "Set the caller's review status for an item",
    request: { params: itemParams.pick({ item_id: true }), body: jsonBody(ItemStatus) },
    responses: { 200: changedStatus, ...errors(404) },
  }),
  addItems: createRoute({
    method: "post",
    path: ITEMS,
    operationId: "add_annotation_queue_items",
    summary: "Add runs to a queue",
    request: { params: queueParams, body: jsonBody(z.object({ items: z.array(addedItem).max(MAX_ADDED) })) },
    responses: { 200: jsonResponse(z.object({ items: z.array(QueueItem) }), "The items."), ...errors(404) },
  }),
  listItems: createRoute({
    method: "get",
    path: ITEMS,
    operationId: "list_annotation_queue_items",
    summary: "List the items of a queue without their runs, in review order",
    request: { params: queueParams, query: ItemsQuery },
    responses: {
      200: jsonResponse(
        z.object({ items: z.array(QueueItem), next_cursor: z.string().optional() }),
        "A page of items.",
      ),
      ...errors(400, 404),
    },
  }),
  countItems: createRoute({
    method: "get",
    path: `${ITEMS}/count`,
    operationId: "count_annotation_queue_items",
    summary: "Count the items with a given review status",
    request: { params: queueParams, query: CountQuery },
    responses: { 200: jsonResponse(z.object({ count: z.int() }), "The number of items."), ...errors(404) },
  }),
  updateItem: createRoute({
    method: "patch",
    path: `${ITEMS}/{item_id}`,
    operationId: "update_annotation_queue_item",
    summary: "Update the `added_at` or `last_reviewed_time` of an item",
    request: { params: itemParams, body: jsonBody(ItemUpdate) },
    responses: { 200: jsonResponse(QueueItem, "The item."), ...errors(404) },
  }),
  deleteItems: createRoute({
    method: "post",
    path: `${ITEMS}/delete`,
    operationId: "delete_annotation_queue_items",
    summary: "Remove items from a queue. The runs are not deleted.",
    request: { params: queueParams, body: jsonBody(z.object({ item_ids: z.array(uuidOrHex).max(MAX_ADDED) })) },
    responses: { 200: deletedResponse("The items were removed."), ...errors(404) },
  }),
  readPlacement: createRoute({
    method: "get",
    path: `${ITEMS}/{item_id}/placement`,
    operationId: "read_annotation_queue_item_placement",
    summary: "Get an item's section in the caller's queue, and its position in that section",
    request: { params: itemParams },
    responses: {
      200: jsonResponse(
        z.object({ item_type: z.literal("RUN"), section, position: z.int() }),
        "The section and the zero-based position in it.",
      ),
      ...errors(404),
    },
  }),
  setItemStatus: createRoute({
    method: "post",
    path: "/platform/annotation-queues/items/{item_id}/status",
    operationId: "set_annotation_queue_item_status",
    summary: "Set the caller's review status for an item",
    request: { params: itemParams.pick({ item_id: true }), body: jsonBody(ItemStatus) },
    responses: { 200: changedStatus, ...errors(404) },
  }),
};
