import { createRoute, z } from "@hono/zod-openapi";
import {
  checkpointId,
  errorResponses,
  jsonBody,
  jsonObject,
  jsonResponse,
  limit,
  nullable,
  optional,
  queryFlag,
  queryLimit,
  repeated,
  searchable,
  threadParams,
  withDefault,
} from "../../platform/contract/fields.ts";
import { Checkpoint, PartialThreadState, ThreadState } from "./records.ts";
import { checkpointRef } from "./run-schemas.ts";

const tags = ["Threads"];

/** Fields of a state in the response; `values.<key>` for single values. */
const stateSelect = repeated(
  z.string().regex(/^(values|next|tasks|metadata|created_at|checkpoint|parent_checkpoint|interrupts)$|^values\../, {
    error: "must be a field of the state, or values.<key>",
  }),
).openapi({ description: "Returns only these fields; `values.<key>` for single values." });

const stateQuery = z.object({
  subgraphs: queryFlag("Include the states of subgraphs in the tasks."),
  select: stateSelect.optional(),
});

/** A state; with `select`, only some of its fields. */
const stateResponse = jsonResponse(PartialThreadState, "The state.");

/** GET /threads/{thread_id}/state. A thread without a graph has an empty state. */
export const getThreadState = createRoute({
  method: "get",
  path: "/threads/{thread_id}/state",
  operationId: "getThreadState",
  summary: "Get the latest state of a thread",
  tags,
  request: { params: threadParams, query: stateQuery },
  responses: { 200: stateResponse, ...errorResponses(404, 422) },
});

/** GET /threads/{thread_id}/state/{checkpoint_id}. */
export const getThreadStateAt = createRoute({
  method: "get",
  path: "/threads/{thread_id}/state/{checkpoint_id}",
  operationId: "getThreadStateAt",
  summary: "Get the state of a thread at a checkpoint",
  tags,
  request: { params: threadParams.extend({ checkpoint_id: checkpointId }), query: stateQuery },
  responses: { 200: stateResponse, ...errorResponses(404, 422) },
});

/** POST /threads/{thread_id}/state/checkpoint. The only route for a subgraph's state by its namespace. */
export const getThreadStateAtCheckpoint = createRoute({
  method: "post",
  path: "/threads/{thread_id}/state/checkpoint",
  operationId: "getThreadStateAtCheckpoint",
  summary: "Get the state of a thread, or of a subgraph, at a checkpoint",
  tags,
  request: {
    params: threadParams,
    body: jsonBody(
      z.object({
        checkpoint: checkpointRef,
        subgraphs: withDefault(z.boolean(), false),
        select: optional(stateSelect),
      }),
    ),
  },
  responses: { 200: stateResponse, ...errorResponses(404, 422) },
});

/** A state update by a client. `as_node` is the node that the update counts as; by default the graph decides. */
export const stateUpdate = z
  .object({
    values: withDefault(nullable(z.union([jsonObject, z.array(z.unknown())], "must be an object or a list")), null),
    as_node: optional(z.string().min(1)),
    checkpoint: optional(checkpointRef),
    checkpoint_id: optional(checkpointId),
  })
  .openapi("StateUpdate");
export type StateUpdate = z.output<typeof stateUpdate>;

/** POST /threads/{thread_id}/state. 400: the thread has no graph. 409: the thread has an active run. */
export const updateThreadState = createRoute({
  method: "post",
  path: "/threads/{thread_id}/state",
  operationId: "updateThreadState",
  summary: "Update the state of a thread",
  description:
    "Creates a checkpoint after the latest, or after the given one. Fails while a run is pending or running.",
  tags,
  request: { params: threadParams, body: jsonBody(stateUpdate) },
  responses: {
    200: jsonResponse(z.object({ checkpoint: Checkpoint }), "The new checkpoint."),
    ...errorResponses(400, 404, 409, 422),
  },
});

/** GET /threads/{thread_id}/history. */
export const getThreadHistory = createRoute({
  method: "get",
  path: "/threads/{thread_id}/history",
  operationId: "getThreadHistory",
  summary: "List past states of a thread",
  tags,
  request: {
    params: threadParams,
    query: z.object({
      limit: queryLimit,
      before: checkpointId.optional().openapi({ description: "Returns only states older than this checkpoint." }),
    }),
  },
  responses: { 200: jsonResponse(z.array(ThreadState), "Newest first."), ...errorResponses(404, 422) },
});

/**
 * The exclusive end of a page of history. Clients send a checkpoint's id, the checkpoint, or a configuration with the id; all are parsed
 * to the id, because ids are ordered by time.
 */
const before = z
  .union(
    [
      checkpointId,
      z.object({ checkpoint_id: checkpointId }),
      z.object({ configurable: z.object({ checkpoint_id: checkpointId }) }),
    ],
    "must be a checkpoint id, a checkpoint, or a config with a checkpoint_id",
  )
  .transform((from) => {
    if (typeof from === "string") return from;
    return "configurable" in from ? from.configurable.checkpoint_id : from.checkpoint_id;
  });

/** Filter of past states. `metadata` must be contained in theirs; `checkpoint.checkpoint_ns` selects a subgraph. */
export const historySearch = z
  .object({
    limit,
    before: optional(before).openapi({ description: "A checkpoint id, a checkpoint, or a config with one." }),
    metadata: optional(searchable),
    checkpoint: optional(checkpointRef),
    select: optional(stateSelect),
  })
  .openapi("HistorySearch");
export type HistorySearch = z.output<typeof historySearch>;

/** POST /threads/{thread_id}/history. Empty for a thread without a graph. */
export const postThreadHistory = createRoute({
  method: "post",
  path: "/threads/{thread_id}/history",
  operationId: "postThreadHistory",
  summary: "Search past states of a thread",
  tags,
  request: { params: threadParams, body: jsonBody(historySearch) },
  responses: { 200: jsonResponse(z.array(PartialThreadState), "Newest first."), ...errorResponses(404, 422) },
});
