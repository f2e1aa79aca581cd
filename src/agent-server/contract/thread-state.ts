import { z } from "@hono/zod-openapi";
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
import { routeGroup } from "../../platform/contract/operation.ts";
import { Checkpoint, PartialThreadState, ThreadState } from "./records.ts";
import { checkpointRef } from "./run-schemas.ts";

const stateSelect = repeated(
  z.string().regex(/^(values|next|tasks|metadata|created_at|checkpoint|parent_checkpoint|interrupts)$|^values\../, {
    error:
      "must be one of `values`, `next`, `tasks`, `metadata`, `created_at`, `checkpoint`, `parent_checkpoint` and `interrupts`, or have the form `values.<key>`",
  }),
).openapi({ description: "State fields to return. Use `values.<key>` for a single key of `values`." });

const stateQuery = z.object({
  subgraphs: queryFlag("Whether to include the subgraphs' states in the tasks."),
  select: stateSelect.optional(),
});

const stateResponse = jsonResponse(PartialThreadState, "The state.");

/** `as_node` is the node to which the update is attributed. By default, LangGraph chooses the node. */
export const stateUpdate = z
  .object({
    values: withDefault(nullable(z.union([jsonObject, z.array(z.unknown())], "must be an object or a list")), null),
    as_node: optional(z.string().min(1)),
    checkpoint: optional(checkpointRef),
    checkpoint_id: optional(checkpointId),
  })
  .openapi("StateUpdate");
export type StateUpdate = z.output<typeof stateUpdate>;

/** Selects states older than a checkpoint: its ID, the checkpoint, or a config with the ID. Transformed to the ID. */
const before = z
  .union(
    [
      checkpointId,
      z.object({ checkpoint_id: checkpointId }),
      z.object({ configurable: z.object({ checkpoint_id: checkpointId }) }),
    ],
    "must be a checkpoint ID, a checkpoint, or a config with a checkpoint_id",
  )
  .transform((from) => {
    if (typeof from === "string") return from;
    return "configurable" in from ? from.configurable.checkpoint_id : from.checkpoint_id;
  });

/** `metadata` matches states whose metadata contains it; `checkpoint.checkpoint_ns` selects a subgraph. */
export const historySearch = z
  .object({
    limit,
    before: optional(before).openapi({
      description:
        "Returns only states older than this checkpoint. Accepts a checkpoint ID, a checkpoint, or a config with a `checkpoint_id`.",
    }),
    metadata: optional(searchable),
    checkpoint: optional(checkpointRef),
    select: optional(stateSelect),
  })
  .openapi("HistorySearch");
export type HistorySearch = z.output<typeof historySearch>;

export const threadStateRoutes = routeGroup("Threads", {
  /** A thread without a graph has an empty state. */
  getThreadState: {
    method: "get",
    path: "/threads/{thread_id}/state",
    summary: "Get a thread's latest state",
    request: { params: threadParams, query: stateQuery },
    responses: { 200: stateResponse, ...errorResponses(404, 422) },
  },

  getThreadStateAt: {
    method: "get",
    path: "/threads/{thread_id}/state/{checkpoint_id}",
    summary: "Get a thread's state at a checkpoint",
    request: { params: threadParams.extend({ checkpoint_id: checkpointId }), query: stateQuery },
    responses: { 200: stateResponse, ...errorResponses(404, 422) },
  },

  getThreadStateAtCheckpoint: {
    method: "post",
    path: "/threads/{thread_id}/state/checkpoint",
    summary: "Get a thread's or a subgraph's state at a checkpoint",
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
  },

  /** 400: the thread has no graph. 409: the thread has an active run, or its state changed during the update. */
  updateThreadState: {
    method: "post",
    path: "/threads/{thread_id}/state",
    summary: "Update a thread's state",
    description:
      "Creates a checkpoint based on the given checkpoint, or on the latest checkpoint by default. Fails while a run of the thread is pending or running.",
    request: { params: threadParams, body: jsonBody(stateUpdate) },
    responses: {
      200: jsonResponse(z.object({ checkpoint: Checkpoint }), "The new checkpoint."),
      ...errorResponses(400, 404, 409, 422),
    },
  },

  getThreadHistory: {
    method: "get",
    path: "/threads/{thread_id}/history",
    summary: "List a thread's states",
    request: {
      params: threadParams,
      query: z.object({
        limit: queryLimit,
        before: checkpointId.optional().openapi({ description: "Returns only states older than this checkpoint." }),
      }),
    },
    responses: { 200: jsonResponse(z.array(ThreadState), "Newest first."), ...errorResponses(404, 422) },
  },

  /** Returns an empty list for a thread without a graph. */
  postThreadHistory: {
    method: "post",
    path: "/threads/{thread_id}/history",
    summary: "Search a thread's states",
    request: { params: threadParams, body: jsonBody(historySearch) },
    responses: { 200: jsonResponse(z.array(PartialThreadState), "Newest first."), ...errorResponses(404, 422) },
  },
});
