import { createRoute, z } from "@hono/zod-openapi";
import {
  errorResponses,
  eventStream,
  jsonBody,
  jsonResponse,
  limit,
  offset,
  optional,
  paginationHeaders,
  repeated,
  searchable,
  selectOf,
  sortOrder,
  threadParams,
  uuid,
  withDefault,
} from "../../platform/contract/fields.ts";
import { PartialThread, Thread, ThreadStatus, ThreadStreamMode } from "./records.ts";
import { command } from "./run-schemas.ts";

export * from "./thread-state.ts";

const tags = ["Threads"];

/** Time to live of a thread without an update. `keep_latest` only deletes its old checkpoints. */
export const threadTtl = z
  .object({
    ttl: z.number().positive().openapi({ description: "Minutes since the last update." }),
    strategy: withDefault(z.enum(["delete", "keep_latest"]), "delete"),
  })
  .openapi("ThreadTtl");

// State updates of a new thread, one checkpoint per superstep.
const superstep = z.object({
  updates: z.array(
    z.object({
      values: withDefault(z.unknown(), null),
      command: optional(command),
      as_node: z.string().min(1).openapi({ description: "The node that the update counts as; `__input__` for input." }),
    }),
  ),
});

/** A new thread. `supersteps` require `metadata.graph_id`. */
export const threadCreate = z
  .object({
    thread_id: optional(uuid),
    metadata: withDefault(searchable, {}),
    if_exists: withDefault(z.enum(["raise", "do_nothing"]), "raise"),
    ttl: optional(threadTtl),
    supersteps: optional(z.array(superstep)),
  })
  .openapi("ThreadCreate");
export type ThreadCreate = z.output<typeof threadCreate>;

/** Changes of a thread. `metadata` is merged key by key. */
export const threadPatch = z
  .object({ metadata: optional(searchable), ttl: optional(threadTtl) })
  .openapi("ThreadPatch");
export type ThreadPatch = z.output<typeof threadPatch>;

/** Filter of threads: `metadata` and `values` must be contained in theirs, also nested. */
export const threadFilter = z
  .object({
    metadata: optional(searchable),
    values: optional(searchable),
    status: optional(ThreadStatus),
  })
  .openapi("ThreadFilter");
export type ThreadFilter = z.output<typeof threadFilter>;

// A path into a thread, like `values.messages[-1].content`.
const extractPath = z.string().regex(/^(values|metadata|config|interrupts)($|[.[])/, {
  error: "must start with values, metadata, config or interrupts",
});

/** A page of threads, last updated first by default. `extract` returns parts of each thread by alias in `extracted`. */
export const threadSearch = z
  .object({
    ...threadFilter.shape,
    ids: optional(z.array(uuid).max(1000)),
    limit,
    offset,
    sort_by: withDefault(z.enum(["thread_id", "status", "created_at", "updated_at", "state_updated_at"]), "updated_at"),
    sort_order: sortOrder,
    select: optional(
      selectOf([
        "thread_id",
        "created_at",
        "updated_at",
        "state_updated_at",
        "metadata",
        "config",
        "context", // clients may name it; threads have none
        "status",
        "values",
        "interrupts",
        "error",
      ]),
    ),
    extract: optional(
      z.record(z.string(), extractPath).refine((paths) => Object.keys(paths).length <= 10, "at most 10 paths"),
    ),
  })
  .openapi("ThreadSearch");
export type ThreadSearch = z.output<typeof threadSearch>;

/** POST /threads. 400: supersteps without a graph. 409: the id is taken. */
export const createThread = createRoute({
  method: "post",
  path: "/threads",
  operationId: "createThread",
  summary: "Create a thread",
  tags,
  request: { body: jsonBody(threadCreate) },
  responses: { 200: jsonResponse(Thread, "The thread."), ...errorResponses(400, 404, 409, 422) },
});

/** POST /threads/search. Excludes the threads of stateless runs. */
export const searchThreads = createRoute({
  method: "post",
  path: "/threads/search",
  operationId: "searchThreads",
  summary: "Search threads",
  tags,
  request: { body: jsonBody(threadSearch) },
  responses: {
    200: { ...jsonResponse(z.array(PartialThread), "One page."), headers: paginationHeaders },
    ...errorResponses(422),
  },
});

/** POST /threads/count. The response is a bare number. */
export const countThreads = createRoute({
  method: "post",
  path: "/threads/count",
  operationId: "countThreads",
  summary: "Count threads",
  tags,
  request: { body: jsonBody(threadFilter) },
  responses: { 200: jsonResponse(z.int(), "The number of matching threads."), ...errorResponses(422) },
});

/** GET /threads/{thread_id}. */
export const getThread = createRoute({
  method: "get",
  path: "/threads/{thread_id}",
  operationId: "getThread",
  summary: "Get a thread",
  tags,
  request: {
    params: threadParams,
    query: z.object({
      include: repeated(z.enum(["ttl"]))
        .optional()
        .openapi({ description: "Fields that are omitted by default." }),
    }),
  },
  responses: { 200: jsonResponse(Thread, "The thread."), ...errorResponses(404, 422) },
});

/** PATCH /threads/{thread_id}. */
export const patchThread = createRoute({
  method: "patch",
  path: "/threads/{thread_id}",
  operationId: "patchThread",
  summary: "Update a thread",
  tags,
  request: {
    params: threadParams,
    headers: z.object({
      Prefer: z.string().optional().openapi({ description: "`return=minimal` returns 204 without a body." }),
    }),
    body: jsonBody(threadPatch),
  },
  responses: {
    200: jsonResponse(Thread, "The updated thread."),
    204: { description: "Updated; with `Prefer: return=minimal`." },
    ...errorResponses(404, 422),
  },
});

/** DELETE /threads/{thread_id}. */
export const deleteThread = createRoute({
  method: "delete",
  path: "/threads/{thread_id}",
  operationId: "deleteThread",
  summary: "Delete a thread",
  description: "Also deletes its runs and checkpoints, and stops active runs.",
  tags,
  request: { params: threadParams },
  responses: { 204: { description: "Deleted." }, ...errorResponses(404, 422) },
});

/** POST /threads/{thread_id}/copy. An unknown source is 409, not 404, as in the official document. */
export const copyThread = createRoute({
  method: "post",
  path: "/threads/{thread_id}/copy",
  operationId: "copyThread",
  summary: "Copy a thread",
  description: "The copy has the state and history of its source, and no runs. Returns 409 for an unknown source.",
  tags,
  request: { params: threadParams },
  responses: { 200: jsonResponse(Thread, "The copy."), ...errorResponses(409, 422) },
});

const streamModes = repeated(ThreadStreamMode).optional();

/** GET /threads/{thread_id}/stream. Stays open until the thread is deleted. */
export const streamThread = createRoute({
  method: "get",
  path: "/threads/{thread_id}/stream",
  operationId: "streamThread",
  summary: "Stream the events of a thread",
  description:
    "Streams the events of all its runs, one run after the other. The stream ends when the thread is deleted.",
  tags,
  request: {
    params: threadParams,
    query: z.object({
      stream_mode: streamModes.openapi({ description: "Default: run_modes." }),
      stream_modes: streamModes.openapi({ description: "Alias of `stream_mode`." }),
    }),
    headers: z.object({
      "Last-Event-ID": z.string().optional().openapi({
        description: "Id of the last received event; `-` for none. Default: from now on.",
      }),
    }),
  },
  responses: { 200: eventStream("Events, after `Last-Event-ID` if given."), ...errorResponses(404, 422) },
});
