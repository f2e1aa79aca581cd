import { z } from "@hono/zod-openapi";
import {
  errorResponses,
  eventStream,
  jsonBody,
  jsonResponse,
  queryCancel,
  queryFlag,
  queryLimit,
  queryOffset,
  repeated,
  responseHeaders,
  selectOf,
  threadParams,
  uuid,
} from "../../platform/contract/fields.ts";
import { routeGroup } from "../../platform/contract/operation.ts";
import { CancelAction, PartialRun, Run, RunStatus, StreamMode } from "./records.ts";
import { OnDisconnect, runBatchCreate, runCreate, statelessRunCreate } from "./run-schemas.ts";

export * from "./run-schemas.ts";

const runParams = threadParams.extend({ run_id: uuid });

const cancelByIds = z.object({ thread_id: uuid, run_ids: z.array(uuid).min(1).max(1000) });
const cancelByStatus = z.object({ status: z.enum(["pending", "running", "all"]) });
const cancelKeys = ["thread_id", "run_ids", "status"] as const;

/** The runs to cancel: given runs of one thread, or all runs with a status. */
export const runCancelMany = z
  .record(z.string(), z.unknown())
  .superRefine((body, context) => {
    const given = cancelKeys.filter((key) => body[key] !== undefined && body[key] !== null);
    const [schema, others] = given.includes("status") ? [cancelByStatus, given.length > 1] : [cancelByIds, false];
    if (given.length === 0 || others)
      return context.addIssue({ code: "custom", message: "must contain either thread_id and run_ids, or only status" });
    for (const issue of schema.safeParse(body).error?.issues ?? [])
      context.addIssue({ code: "custom", path: issue.path, message: issue.message });
  })
  .transform((body) => body as z.infer<typeof cancelByIds> | z.infer<typeof cancelByStatus>)
  .openapi("RunCancelMany", {
    type: "object",
    properties: {
      thread_id: { type: "string", format: "uuid", description: "The thread that the runs in `run_ids` belong to." },
      run_ids: {
        type: "array",
        items: { type: "string", format: "uuid" },
        description: "IDs of the runs to cancel. If any of these runs cannot be cancelled, none of them is cancelled.",
      },
      status: {
        type: "string",
        enum: ["pending", "running", "all"],
        description:
          "Cancels all runs with this status; `all` means pending and running. Cannot be combined with the other fields.",
      },
    },
  });
export type RunCancelMany = z.output<typeof runCancelMany>;

const statelessParams = z.object({ run_id: uuid });

/** Query parameters of requests that wait for a run to end. The `on_disconnect` of a body takes precedence. */
const waitQuery = z.object({
  cancel_on_disconnect: queryCancel.optional().openapi({
    description:
      "Cancels the run if this client disconnects and no client joins the run or its stream within the grace period (THREADMILL_DISCONNECT_GRACE, default 2 s). The value can also be `cancel` (the same as true) or `continue` (the same as false).",
  }),
  on_disconnect: OnDisconnect.optional().openapi({ description: "Alternative to `cancel_on_disconnect`." }),
});

const streamQuery = waitQuery.extend({
  namespace: repeated(z.string()).optional().openapi({
    description:
      "Returns only events whose namespace, the part of their name after the first `|`, is one of these, for example `study:73030c8b-...`. An empty value selects events without a namespace: those of the root graph, and all `messages/*` events. `metadata`, `error` and `gap` events are always returned.",
  }),
});

const joinStreamQuery = streamQuery.extend({
  stream_mode: repeated(StreamMode).optional().openapi({
    description: "Returns only events of these modes. `metadata`, `error` and `gap` events are always returned.",
  }),
});

const resumeHeaders = z.object({
  "Last-Event-ID": z.string().optional().openapi({
    description:
      "ID of the last received event. The stream starts with the next event; `-1` returns all events. Default: only new events.",
  }),
});

const CONTENT_LOCATION = "Path of the run. The last segment is the run ID.";
const LOCATION =
  "Path for resuming the response with GET after the connection is lost. Includes the query string of this request.";

const runCreated = {
  ...jsonResponse(Run, "The pending run."),
  headers: responseHeaders({ "Content-Location": CONTENT_LOCATION }),
};

const newRunHeaders = responseHeaders({ "Content-Location": CONTENT_LOCATION, Location: LOCATION });

const runEvents = {
  ...eventStream("The first event is `metadata` and contains the run ID. The stream closes when the run has ended."),
  headers: newRunHeaders,
};

const joinedEvents = eventStream("The run's new events. With `Last-Event-ID`, all events after that ID.");

const OUTPUT =
  "The state values after the run. The output of a paused run includes `__interrupt__`. A failed run returns `{__error__: {error, message}}` with status 200.";

/** Line breaks may precede the JSON; they keep the connection alive. */
const runOutput = { ...jsonResponse(z.unknown(), OUTPUT), headers: newRunHeaders };

const joinedOutput = { ...jsonResponse(z.unknown(), OUTPUT), headers: responseHeaders({ Location: LOCATION }) };

export const runRoutes = routeGroup("Thread Runs", {
  /** 404: unknown thread, assistant or checkpoint. 409: strategy `reject` on a busy thread. */
  createRun: {
    method: "post",
    path: "/threads/{thread_id}/runs",
    summary: "Create a run",
    description: "Returns immediately. The runs of a thread are executed one after another.",
    request: { params: threadParams, body: jsonBody(runCreate) },
    responses: { 200: runCreated, ...errorResponses(404, 409, 413, 422) },
  },

  createRunStream: {
    method: "post",
    path: "/threads/{thread_id}/runs/stream",
    summary: "Create a run and stream its events",
    request: { params: threadParams, query: streamQuery, body: jsonBody(runCreate) },
    responses: { 200: runEvents, ...errorResponses(404, 409, 413, 422) },
  },

  createRunWait: {
    method: "post",
    path: "/threads/{thread_id}/runs/wait",
    summary: "Create a run and wait for its output",
    request: { params: threadParams, query: waitQuery, body: jsonBody(runCreate) },
    responses: { 200: runOutput, ...errorResponses(404, 409, 413, 422) },
  },

  listRuns: {
    method: "get",
    path: "/threads/{thread_id}/runs",
    summary: "List a thread's runs",
    request: {
      params: threadParams,
      query: z.object({
        limit: queryLimit,
        offset: queryOffset,
        status: RunStatus.optional(),
        select: selectOf(Run.keyof().options).optional(),
      }),
    },
    responses: { 200: jsonResponse(z.array(PartialRun), "Newest first."), ...errorResponses(404, 422) },
  },

  /** 404 also after a rollback, which deletes the run. */
  getRun: {
    method: "get",
    path: "/threads/{thread_id}/runs/{run_id}",
    summary: "Get a run",
    request: { params: runParams },
    responses: { 200: jsonResponse(Run, "The run."), ...errorResponses(404, 422) },
  },

  deleteRun: {
    method: "delete",
    path: "/threads/{thread_id}/runs/{run_id}",
    summary: "Delete a run",
    description: "Also deletes the run's checkpoints. Fails while any run of the thread is pending or running.",
    request: { params: runParams },
    responses: { 204: { description: "Deleted." }, ...errorResponses(404, 409, 422) },
  },

  joinRun: {
    method: "get",
    path: "/threads/{thread_id}/runs/{run_id}/join",
    summary: "Wait for a run's output",
    request: { params: runParams, query: waitQuery },
    responses: { 200: joinedOutput, ...errorResponses(404, 422) },
  },

  joinRunStream: {
    method: "get",
    path: "/threads/{thread_id}/runs/{run_id}/stream",
    summary: "Stream a run's events",
    request: { params: runParams, query: joinStreamQuery, headers: resumeHeaders },
    responses: { 200: joinedEvents, ...errorResponses(404, 422) },
  },

  cancelRun: {
    method: "post",
    path: "/threads/{thread_id}/runs/{run_id}/cancel",
    summary: "Cancel a run",
    description:
      "`interrupt` keeps the run and its checkpoints. `rollback` deletes both and resets the thread to its state before the run. A run that has ended " +
      "or is paused cannot be cancelled.",
    request: {
      params: runParams,
      query: z.object({
        wait: queryFlag("Whether to return only after the run has stopped."),
        action: CancelAction.default("interrupt"),
        reason: z
          .string()
          .max(1000)
          .optional()
          .openapi({ description: "Reason to store in the run's `cancel_reason` field." }),
      }),
    },
    responses: {
      202: { description: "The run will stop." },
      204: { description: "The run has stopped. Returned only with `wait`." },
      ...errorResponses(404, 409, 422),
    },
  },

  /** 404: unknown run. 409: ended run. In both cases no run is cancelled. */
  cancelRuns: {
    method: "post",
    path: "/runs/cancel",
    summary: "Cancel several runs",
    description:
      "Cancels the given runs of one thread (all or none), or all runs with a given status. Returns when the cancellations " +
      "are stored; the runs stop shortly afterwards.",
    request: { query: z.object({ action: CancelAction.default("interrupt") }), body: jsonBody(runCancelMany) },
    responses: { 204: { description: "The runs will stop." }, ...errorResponses(404, 409, 422) },
  },
});

export const statelessRunRoutes = routeGroup("Stateless Runs", {
  /** 404: unknown assistant. */
  createStatelessRun: {
    method: "post",
    path: "/runs",
    summary: "Create a stateless run",
    description:
      "Executes the run on a new thread. By default, the thread is hidden, and is deleted when the run ends.",
    request: { body: jsonBody(statelessRunCreate) },
    responses: { 200: runCreated, ...errorResponses(404, 413, 422) },
  },

  createStatelessRunStream: {
    method: "post",
    path: "/runs/stream",
    summary: "Create a stateless run and stream its events",
    request: { query: streamQuery, body: jsonBody(statelessRunCreate) },
    responses: { 200: runEvents, ...errorResponses(404, 413, 422) },
  },

  createStatelessRunWait: {
    method: "post",
    path: "/runs/wait",
    summary: "Create a stateless run and wait for its output",
    request: { query: waitQuery, body: jsonBody(statelessRunCreate) },
    responses: { 200: runOutput, ...errorResponses(404, 413, 422) },
  },

  createRunBatch: {
    method: "post",
    path: "/runs/batch",
    summary: "Create several stateless runs",
    request: { body: jsonBody(runBatchCreate) },
    responses: {
      200: jsonResponse(z.array(Run), "The runs, in the order of the request."),
      ...errorResponses(404, 413, 422),
    },
  },

  joinStatelessRun: {
    method: "get",
    path: "/runs/{run_id}/join",
    summary: "Wait for a stateless run's output",
    request: { params: statelessParams, query: waitQuery },
    responses: { 200: joinedOutput, ...errorResponses(404, 422) },
  },

  joinStatelessRunStream: {
    method: "get",
    path: "/runs/{run_id}/stream",
    summary: "Stream a stateless run's events",
    request: { params: statelessParams, query: joinStreamQuery, headers: resumeHeaders },
    responses: { 200: joinedEvents, ...errorResponses(404, 422) },
  },
});
