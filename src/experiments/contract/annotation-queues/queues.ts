import { createRoute, z } from "@hono/zod-openapi";
import {
  jsonBody,
  jsonObject,
  jsonResponse,
  nullable,
  optional,
  queryBoolean,
} from "../../../platform/contract/fields.ts";
import { idAndName, paging, refused, timeText, uuidOrHex, uuids } from "../fields.ts";
import { deletedResponse, errors } from "../responses.ts";

const descriptions = nullable(z.record(z.string(), z.string())).optional();

/** A feedback key that reviewers score. Unknown fields are stored and returned unchanged. */
const RubricItem = z
  .object({
    feedback_key: z.string().min(1).max(180),
    description: nullable(z.string()).optional(),
    value_descriptions: descriptions,
    score_descriptions: descriptions,
    is_required: nullable(z.boolean()).optional(),
    feedback_config: nullable(jsonObject)
      .optional()
      .describe("The feedback config of `feedback_key`. Ignored in requests."),
  })
  .catchall(z.unknown())
  .openapi("AnnotationQueueRubricItem");
export type RubricItem = z.output<typeof RubricItem>;

/** A queue of runs for human review. An item is fully reviewed when `num_reviewers_per_item` users have completed it. */
export const AnnotationQueue = z
  .object({
    id: z.string(),
    tenant_id: z.string(),
    name: z.string(),
    description: z.string().nullable(),
    queue_type: z.literal("single"),
    default_dataset: z.string().nullable(),
    num_reviewers_per_item: z.int(),
    metadata: jsonObject.nullable(),
    enable_reservations: z.literal(false),
    reservation_minutes: z.null(),
    reviewer_access_mode: z.literal("any"),
    assigned_reviewers: z.array(jsonObject).max(0),
    run_rule_id: z.null(),
    source_rule_id: z.null(),
    created_at: timeText,
    updated_at: timeText,
    rubric_instructions: z.string().nullable(),
    rubric_items: z.array(RubricItem).nullable(),
  })
  .openapi("AnnotationQueue");
export type AnnotationQueue = z.output<typeof AnnotationQueue>;

const withSize = AnnotationQueue.extend({ total_runs: z.int() }).openapi("AnnotationQueueWithSize");

const values = {
  description: nullable(z.string().max(10_000)).optional(),
  default_dataset: nullable(uuidOrHex).optional(),
  num_reviewers_per_item: optional(z.int().min(1).max(100)),
  metadata: nullable(jsonObject).optional(),
  rubric_instructions: nullable(z.string().max(100_000)).optional(),
  rubric_items: nullable(z.array(RubricItem).max(100)).optional(),
  enable_reservations: optional(
    z.boolean().refine((is_enabled) => !is_enabled, "must be false: reservations are not supported"),
  ),
  reviewer_access_mode: optional(
    z.string().refine((mode) => mode === "any", 'must be "any": assigned reviewers are not supported'),
  ),
};

const QueueCreate = z
  .object({
    ...values,
    id: optional(uuidOrHex),
    name: z.string().min(1).max(1000),
    session_ids: optional(z.array(uuidOrHex).max(100)).describe("Adds the root runs of these sessions."),
  })
  .openapi("AnnotationQueueCreate");
export type QueueCreate = z.output<typeof QueueCreate>;

/** Missing fields keep their values. Null removes the value of a nullable field. */
const QueueUpdate = z
  .object({ ...values, name: optional(z.string().min(1).max(1000)) })
  .openapi("AnnotationQueueUpdate");
export type QueueUpdate = z.output<typeof QueueUpdate>;

export const QueueQuery = z.object({
  ids: uuids.optional(),
  name: idAndName.name,
  name_contains: idAndName.name_contains,
  dataset_id: uuidOrHex.optional().describe("Returns only queues with this default dataset."),
  queue_type: z.enum(["single", "pairwise"]).optional(),
  assigned_to_me: queryBoolean.optional().describe("If true, returns no queue: queues cannot be assigned to users."),
  tag_value_id: refused("is not supported: resource tags do not exist"),
  sort_by: z.enum(["name", "created_at", "updated_at"]).default("created_at"),
  sort_by_desc: queryBoolean.default(true),
  ...paging,
});
export type QueueQuery = z.output<typeof QueueQuery>;

export const queueParams = z.object({ queue_id: uuidOrHex });
const QUEUE = "/annotation-queues/{queue_id}";

export const annotationQueueRoutes = {
  listQueues: createRoute({
    method: "get",
    path: "/annotation-queues",
    operationId: "list_annotation_queues",
    summary: "List annotation queues",
    request: { query: QueueQuery },
    responses: { 200: jsonResponse(z.array(withSize), "A page of queues."), ...errors() },
  }),
  createQueue: createRoute({
    method: "post",
    path: "/annotation-queues",
    operationId: "create_annotation_queue",
    summary: "Create an annotation queue",
    request: { body: jsonBody(QueueCreate) },
    responses: { 200: jsonResponse(AnnotationQueue, "The queue."), ...errors(404, 409) },
  }),
  readQueue: createRoute({
    method: "get",
    path: QUEUE,
    operationId: "read_annotation_queue",
    summary: "Get an annotation queue with the feedback configs of its rubric",
    request: { params: queueParams },
    responses: { 200: jsonResponse(AnnotationQueue, "The queue."), ...errors(404) },
  }),
  updateQueue: createRoute({
    method: "patch",
    path: QUEUE,
    operationId: "update_annotation_queue",
    summary: "Update an annotation queue",
    request: { params: queueParams, body: jsonBody(QueueUpdate) },
    responses: { 200: jsonResponse(AnnotationQueue, "The updated queue."), ...errors(404) },
  }),
  deleteQueue: createRoute({
    method: "delete",
    path: QUEUE,
    operationId: "delete_annotation_queue",
    summary: "Delete an annotation queue. The runs are not deleted.",
    request: { params: queueParams },
    responses: { 200: deletedResponse("The queue was deleted."), ...errors(404) },
  }),
  listQueuesOfRun: createRoute({
    method: "get",
    path: "/annotation-queues/{run_id}/queues",
    operationId: "list_annotation_queues_of_run",
    summary: "List the annotation queues that contain a run",
    request: { params: z.object({ run_id: uuidOrHex }) },
    responses: { 200: jsonResponse(z.array(AnnotationQueue), "The queues."), ...errors(404) },
  }),
  populateQueue: createRoute({
    method: "post",
    path: "/annotation-queues/populate",
    operationId: "populate_annotation_queue",
    summary: "Add the root runs of sessions to a queue",
    request: { body: jsonBody(z.object({ queue_id: uuidOrHex, session_ids: z.array(uuidOrHex).min(1).max(100) })) },
    responses: {
      200: jsonResponse(z.object({ added: z.int() }), "The number of runs that were added."),
      ...errors(404),
    },
  }),
};
