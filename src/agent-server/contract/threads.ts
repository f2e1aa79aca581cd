import { z } from "@hono/zod-openapi";
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
import { routeGroup } from "../../platform/contract/operation.ts";
import { PartialThread, Thread, ThreadStatus, ThreadStreamMode } from "./records.ts";
import { command } from "./run-schemas.ts";

/** 100 years. */
const MAX_TTL_MINUTES = 52_560_000;

const pruneStrategy = z.enum(["delete", "keep_latest"]);

/** Time to live of a thread without an update. `keep_latest` deletes only the thread's old checkpoints. */
export const threadTtl = z
  .object({
    ttl: z
      .number()
      .positive()
      .max(MAX_TTL_MINUTES)
      .openapi({ description: "Time to live, in minutes since the thread's last update." }),
    strategy: withDefault(pruneStrategy, "delete"),
  })
  .openapi("ThreadTtl");
export type ThreadTtlRequest = z.output<typeof threadTtl>;

export const threadPrune = z
  .object({
    thread_ids: z.array(uuid).max(1000),
    strategy: withDefault(pruneStrategy, "delete").openapi({
      description: "`delete` deletes the threads. `keep_latest` deletes only their old checkpoints.",
    }),
  })
  .openapi("ThreadPrune");
export type ThreadPrune = z.output<typeof threadPrune>;

const storedSize = z.object({ count: z.int(), bytes: z.int() });

/** Size of a thread's checkpoints in the database, in bytes, excluding indexes. */
export const threadStorage = z
  .object({
    thread_id: uuid,
    total_bytes: z.int(),
    checkpoints: storedSize,
    channel_values: storedSize.extend({
      by_channel: z.record(z.string(), z.object({ versions: z.int(), bytes: z.int() })),
    }),
    pending_writes: storedSize,
  })
  .openapi("ThreadStorage");
export type ThreadStorage = z.infer<typeof threadStorage>;

// State updates that create one checkpoint.
const superstep = z.object({
  updates: z.array(
    z.object({
      values: withDefault(z.unknown(), null),
      command: optional(command),
      as_node: z
        .string()
        .min(1)
        .openapi({ description: "Node to which the update is attributed; `__input__` for the graph's input." }),
    }),
  ),
});

/** `supersteps` requires `metadata.graph_id`. */
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

/** `metadata` is merged key by key. */
export const threadPatch = z
  .object({ metadata: optional(searchable), ttl: optional(threadTtl) })
  .openapi("ThreadPatch");
export type ThreadPatch = z.output<typeof threadPatch>;

/** `metadata` and `values` match threads that contain them, including nested values. */
export const threadFilter = z
  .object({
    metadata: optional(searchable),
    values: optional(searchable),
    status: optional(ThreadStatus),
  })
  .openapi("ThreadFilter");
export type ThreadFilter = z.output<typeof threadFilter>;

// A path into a thread, like `values.messages[-1].content`.
const extractPath = z
  .string()
  .max(500)
  .regex(/^(values|metadata|config|interrupts)($|[.[])/, {
    error: "must start with `values`, `metadata`, `config` or `interrupts`",
  });

/** `extract` maps aliases to paths. Each thread in the response contains the values at these paths, by alias, in `extracted`. */
export const threadSearch = z
  .object({
    ...threadFilter.shape,
    ids: optional(z.array(uuid).max(1000)),
    limit,
    offset,
    sort_by: withDefault(z.enum(["thread_id", "status", "created_at", "updated_at", "state_updated_at"]), "updated_at"),
    sort_order: sortOrder,
    select: optional(
      // Clients may request `context`, although threads have no such field.
      selectOf([...Thread.omit({ ttl: true, extracted: true }).keyof().options, "context"]),
    ),
    extract: optional(
      z
        .record(z.string(), extractPath)
        .refine((paths) => Object.keys(paths).length <= 10, "must contain at most 10 paths"),
    ),
  })
  .openapi("ThreadSearch");
export type ThreadSearch = z.output<typeof threadSearch>;

const streamModes = repeated(ThreadStreamMode).optional();

export const threadRoutes = routeGroup("Threads", {
  /** 400: supersteps without a graph. 404: unknown graph. 409: the id is taken. */
  createThread: {
    method: "post",
    path: "/threads",
    summary: "Create a thread",
    request: { body: jsonBody(threadCreate) },
    responses: { 200: jsonResponse(Thread, "The thread."), ...errorResponses(400, 404, 409, 422) },
  },

  /** Excludes the hidden threads of stateless runs. */
  searchThreads: {
    method: "post",
    path: "/threads/search",
    summary: "Search threads",
    request: { body: jsonBody(threadSearch) },
    responses: {
      200: { ...jsonResponse(z.array(PartialThread), "One page."), headers: paginationHeaders },
      ...errorResponses(422),
    },
  },

  countThreads: {
    method: "post",
    path: "/threads/count",
    summary: "Count threads",
    request: { body: jsonBody(threadFilter) },
    responses: { 200: jsonResponse(z.int(), "The number of matching threads."), ...errorResponses(422) },
  },

  getThread: {
    method: "get",
    path: "/threads/{thread_id}",
    summary: "Get a thread",
    request: {
      params: threadParams,
      query: z.object({
        include: repeated(z.enum(["ttl"]))
          .optional()
          .openapi({ description: "Additional fields to return. They are omitted by default." }),
      }),
    },
    responses: { 200: jsonResponse(Thread, "The thread."), ...errorResponses(404, 422) },
  },

  patchThread: {
    method: "patch",
    path: "/threads/{thread_id}",
    summary: "Update a thread",
    request: {
      params: threadParams,
      headers: z.object({
        Prefer: z.string().optional().openapi({ description: "`return=minimal` returns 204 without a body." }),
      }),
      body: jsonBody(threadPatch),
    },
    responses: {
      200: jsonResponse(Thread, "The updated thread."),
      204: { description: "The thread was updated. Returned with `Prefer: return=minimal`." },
      ...errorResponses(404, 422),
    },
  },

  deleteThread: {
    method: "delete",
    path: "/threads/{thread_id}",
    summary: "Delete a thread",
    description: "Also deletes the thread's runs, checkpoints and crons, and stops active runs.",
    request: { params: threadParams },
    responses: { 204: { description: "Deleted." }, ...errorResponses(404, 422) },
  },

  pruneThreads: {
    method: "post",
    path: "/threads/prune",
    summary: "Delete threads or their old checkpoints",
    description:
      "Threads that do not exist are skipped. `delete` also stops active runs; `keep_latest` skips threads with active runs.",
    request: { body: jsonBody(threadPrune) },
    responses: {
      200: jsonResponse(
        z.object({ pruned_count: z.int() }),
        "The number of threads that were deleted or whose old checkpoints were deleted.",
      ),
      ...errorResponses(422),
    },
  },

  getThreadStorage: {
    method: "get",
    path: "/threads/{thread_id}/storage",
    summary: "Get the size of a thread's checkpoints",
    request: { params: threadParams },
    responses: { 200: jsonResponse(threadStorage, "The sizes."), ...errorResponses(404, 422) },
  },

  /** As in the official document, an unknown source causes a 409, not a 404. */
  copyThread: {
    method: "post",
    path: "/threads/{thread_id}/copy",
    summary: "Copy a thread",
    description:
      "The copy has the state and history of the source thread, but no runs. Returns 409 if the source thread does not exist.",
    request: { params: threadParams },
    responses: { 200: jsonResponse(Thread, "The copy."), ...errorResponses(409, 422) },
  },

  streamThread: {
    method: "get",
    path: "/threads/{thread_id}/stream",
    summary: "Stream a thread's events",
    description:
      "Streams the events of all runs of the thread, one run after another. The stream ends when the thread is deleted.",
    request: {
      params: threadParams,
      query: z.object({
        stream_mode: streamModes.openapi({ description: "Default: `run_modes`." }),
        stream_modes: streamModes.openapi({ description: "Alias for `stream_mode`." }),
      }),
      headers: z.object({
        "Last-Event-ID": z.string().optional().openapi({
          description:
            "ID of the last received event. The stream starts with the next event; `-` returns all events. Default: only new events.",
        }),
      }),
    },
    responses: {
      200: eventStream("The thread's new events. With `Last-Event-ID`, all events after that ID."),
      ...errorResponses(404, 422),
    },
  },
});
