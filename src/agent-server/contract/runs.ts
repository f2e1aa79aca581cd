import { createRoute, z } from "@hono/zod-openapi";
import {
  errorResponses,
  jsonBody,
  jsonResponse,
  queryFlag,
  queryLimit,
  queryOffset,
  selectOf,
  threadParams,
  uuid,
} from "../../platform/contract/fields.ts";
import { CancelAction, PartialRun, Run, RunStatus } from "./records.ts";
import {
  joinedEvents,
  joinedOutput,
  joinQuery,
  joinStreamQuery,
  resumeHeaders,
  runBatchCreate,
  runCreate,
  runCreated,
  runEvents,
  runOutput,
  statelessRunCreate,
  streamQuery,
  waitQuery,
} from "./run-schemas.ts";

export * from "./run-schemas.ts";

const tags = ["Thread Runs"];
const runParams = threadParams.extend({ run_id: uuid });

/** POST /threads/{thread_id}/runs. 404: unknown thread or assistant. 409: strategy `reject` on a busy thread. */
export const createRun = createRoute({
  method: "post",
  path: "/threads/{thread_id}/runs",
  operationId: "createRun",
  summary: "Create a run",
  description: "Returns at once; the run starts when the thread is free.",
  tags,
  request: { params: threadParams, body: jsonBody(runCreate) },
  responses: { 200: runCreated, ...errorResponses(404, 409, 413, 422) },
});

/** POST /threads/{thread_id}/runs/stream. Errors as in {@link createRun}, returned before the stream starts. */
export const createRunStream = createRoute({
  method: "post",
  path: "/threads/{thread_id}/runs/stream",
  operationId: "createRunStream",
  summary: "Create a run and stream its events",
  tags,
  request: { params: threadParams, query: streamQuery, body: jsonBody(runCreate) },
  responses: { 200: runEvents, ...errorResponses(404, 409, 413, 422) },
});

/** POST /threads/{thread_id}/runs/wait. Errors as in {@link createRun}; a failed run returns 200. */
export const createRunWait = createRoute({
  method: "post",
  path: "/threads/{thread_id}/runs/wait",
  operationId: "createRunWait",
  summary: "Create a run and wait for its end",
  tags,
  request: { params: threadParams, query: waitQuery, body: jsonBody(runCreate) },
  responses: { 200: runOutput, ...errorResponses(404, 409, 413, 422) },
});

/** GET /threads/{thread_id}/runs. Newest first. */
export const listRuns = createRoute({
  method: "get",
  path: "/threads/{thread_id}/runs",
  operationId: "listRuns",
  summary: "List the runs of a thread",
  tags,
  request: {
    params: threadParams,
    query: z.object({
      limit: queryLimit,
      offset: queryOffset,
      status: RunStatus.optional(),
      select: selectOf([
        "run_id",
        "thread_id",
        "assistant_id",
        "created_at",
        "updated_at",
        "status",
        "metadata",
        "kwargs",
        "multitask_strategy",
        "cancel_reason",
      ]).optional(),
    }),
  },
  responses: { 200: jsonResponse(z.array(PartialRun), "Newest first."), ...errorResponses(404, 422) },
});

/** GET /threads/{thread_id}/runs/{run_id}. Also 404 after a rollback, which deletes the run. */
export const getRun = createRoute({
  method: "get",
  path: "/threads/{thread_id}/runs/{run_id}",
  operationId: "getRun",
  summary: "Get a run",
  tags,
  request: { params: runParams },
  responses: { 200: jsonResponse(Run, "The run."), ...errorResponses(404, 422) },
});

/** DELETE /threads/{thread_id}/runs/{run_id}. 409: this or another run of the thread is active. */
export const deleteRun = createRoute({
  method: "delete",
  path: "/threads/{thread_id}/runs/{run_id}",
  operationId: "deleteRun",
  summary: "Delete a run",
  description:
    "Also deletes the run's checkpoints. Fails while this or another run of the thread is pending or running.",
  tags,
  request: { params: runParams },
  responses: { 204: { description: "Deleted." }, ...errorResponses(404, 409, 422) },
});

/** GET /threads/{thread_id}/runs/{run_id}/join. Returns the run's output, also after its end. */
export const joinRun = createRoute({
  method: "get",
  path: "/threads/{thread_id}/runs/{run_id}/join",
  operationId: "joinRun",
  summary: "Wait for the end of a run",
  tags,
  request: { params: runParams, query: joinQuery },
  responses: { 200: joinedOutput, ...errorResponses(404, 422) },
});

/** GET /threads/{thread_id}/runs/{run_id}/stream. Resumes a broken stream. */
export const joinRunStream = createRoute({
  method: "get",
  path: "/threads/{thread_id}/runs/{run_id}/stream",
  operationId: "joinRunStream",
  summary: "Stream the events of a run",
  tags,
  request: { params: runParams, query: joinStreamQuery, headers: resumeHeaders },
  responses: { 200: joinedEvents, ...errorResponses(404, 422) },
});

/** POST /threads/{thread_id}/runs/{run_id}/cancel. 409: the run has ended; a paused run has ended, too. */
export const cancelRun = createRoute({
  method: "post",
  path: "/threads/{thread_id}/runs/{run_id}/cancel",
  operationId: "cancelRun",
  summary: "Cancel a run",
  description:
    "`interrupt` keeps the run and its checkpoints. `rollback` deletes both and restores the thread. An ended run " +
    "cannot be cancelled; a paused run has ended.",
  tags,
  request: {
    params: runParams,
    query: z.object({
      wait: queryFlag("Returns once the run has stopped."),
      action: CancelAction.default("interrupt"),
      reason: z.string().max(1000).optional().openapi({ description: "Stored as the run's cancel_reason." }),
    }),
  },
  responses: {
    202: { description: "The run will stop." },
    204: { description: "The run has stopped; with `wait`." },
    ...errorResponses(404, 409, 422),
  },
});

const cancelByIds = z.object({ thread_id: uuid, run_ids: z.array(uuid).min(1).max(1000) });
const cancelByStatus = z.object({ status: z.enum(["pending", "running", "all"]) });
const cancelKeys = ["thread_id", "run_ids", "status"] as const;

/** The runs to cancel: the named runs of one thread, or all runs with a status. */
export const runCancelMany = z
  .record(z.string(), z.unknown())
  .superRefine((body, context) => {
    const given = cancelKeys.filter((key) => body[key] !== undefined && body[key] !== null);
    const [schema, others] = given.includes("status") ? [cancelByStatus, given.length > 1] : [cancelByIds, false];
    if (given.length === 0 || others)
      return context.addIssue({ code: "custom", message: "must have either thread_id and run_ids, or status" });
    for (const issue of schema.safeParse(body).error?.issues ?? [])
      context.addIssue({ code: "custom", path: issue.path, message: issue.message });
  })
  .transform((body) => body as z.infer<typeof cancelByIds> | z.infer<typeof cancelByStatus>)
  .openapi("RunCancelMany", {
    type: "object",
    properties: {
      thread_id: { type: "string", format: "uuid", description: "The thread of `run_ids`." },
      run_ids: { type: "array", items: { type: "string", format: "uuid" }, description: "All of these runs, or none." },
      status: {
        type: "string",
        enum: ["pending", "running", "all"],
        description: "All runs with this status; excludes the other fields.",
      },
    },
  });
export type RunCancelMany = z.output<typeof runCancelMany>;

/** POST /runs/cancel. 404: a run is unknown. 409: a run has ended. In both cases no run is cancelled. */
export const cancelRuns = createRoute({
  method: "post",
  path: "/runs/cancel",
  operationId: "cancelRuns",
  summary: "Cancel several runs",
  description:
    "Cancels runs of one thread, all or none, or all runs with a status, of which there may be none. Returns when the " +
    "cancels are durable; the runs stop soon after.",
  tags,
  request: { query: z.object({ action: CancelAction.default("interrupt") }), body: jsonBody(runCancelMany) },
  responses: { 204: { description: "The runs will stop." }, ...errorResponses(404, 409, 422) },
});

const statelessTags = ["Stateless Runs"];
const statelessParams = z.object({ run_id: uuid });

/** POST /runs. 404: unknown assistant. */
export const createStatelessRun = createRoute({
  method: "post",
  path: "/runs",
  operationId: "createStatelessRun",
  summary: "Create a stateless run",
  description: "Runs on its own hidden thread.",
  tags: statelessTags,
  request: { body: jsonBody(statelessRunCreate) },
  responses: { 200: runCreated, ...errorResponses(404, 413, 422) },
});

/** POST /runs/stream. Errors are returned before the stream starts. */
export const createStatelessRunStream = createRoute({
  method: "post",
  path: "/runs/stream",
  operationId: "createStatelessRunStream",
  summary: "Create a stateless run and stream its events",
  tags: statelessTags,
  request: { query: streamQuery, body: jsonBody(statelessRunCreate) },
  responses: { 200: runEvents, ...errorResponses(404, 413, 422) },
});

/** POST /runs/wait. A failed run returns 200. */
export const createStatelessRunWait = createRoute({
  method: "post",
  path: "/runs/wait",
  operationId: "createStatelessRunWait",
  summary: "Create a stateless run and wait for its end",
  tags: statelessTags,
  request: { query: waitQuery, body: jsonBody(statelessRunCreate) },
  responses: { 200: runOutput, ...errorResponses(404, 413, 422) },
});

/** POST /runs/batch. Returns the runs in the order of the bodies. 404: an assistant is unknown. */
export const createRunBatch = createRoute({
  method: "post",
  path: "/runs/batch",
  operationId: "createRunBatch",
  summary: "Create several stateless runs",
  tags: statelessTags,
  request: { body: jsonBody(runBatchCreate) },
  responses: {
    200: jsonResponse(z.array(Run), "The runs, in the order of the request."),
    ...errorResponses(404, 413, 422),
  },
});

/** GET /runs/{run_id}/join. Resumes a broken wait. */
export const joinStatelessRun = createRoute({
  method: "get",
  path: "/runs/{run_id}/join",
  operationId: "joinStatelessRun",
  summary: "Wait for the end of a stateless run",
  tags: statelessTags,
  request: { params: statelessParams, query: joinQuery },
  responses: { 200: joinedOutput, ...errorResponses(404, 422) },
});

/** GET /runs/{run_id}/stream. Resumes a broken stream. */
export const joinStatelessRunStream = createRoute({
  method: "get",
  path: "/runs/{run_id}/stream",
  operationId: "joinStatelessRunStream",
  summary: "Stream the events of a stateless run",
  tags: statelessTags,
  request: { params: statelessParams, query: joinStreamQuery, headers: resumeHeaders },
  responses: { 200: joinedEvents, ...errorResponses(404, 422) },
});
