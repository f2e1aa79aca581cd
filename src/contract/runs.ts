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
} from "./fields.ts";
import { CancelAction, PartialRun, Run, RunStatus } from "./records.ts";
import { runCreate } from "./run-create.ts";
import {
  joinedEvents,
  joinedOutput,
  joinQuery,
  joinStreamQuery,
  resumeHeaders,
  runCreated,
  runEvents,
  runOutput,
  streamQuery,
  waitQuery,
} from "./run-parts.ts";

export * from "./run-create.ts";
export * from "./stateless-runs.ts";

const tags = ["Thread Runs"];
const runParams = threadParams.extend({ run_id: uuid });

/** POST /threads/{thread_id}/runs. 404: no such thread or assistant. 409: `reject`, and the thread is busy. */
export const createRun = createRoute({
  method: "post",
  path: "/threads/{thread_id}/runs",
  operationId: "createRun",
  summary: "Create a run",
  description: "Answers at once; the run starts when the thread is free.",
  tags,
  request: { params: threadParams, body: jsonBody(runCreate) },
  responses: { 200: runCreated, ...errorResponses(404, 409, 413, 422) },
});

/** POST /threads/{thread_id}/runs/stream. Errors as in {@link createRun}, before the stream starts. */
export const createRunStream = createRoute({
  method: "post",
  path: "/threads/{thread_id}/runs/stream",
  operationId: "createRunStream",
  summary: "Create a run and read its events",
  tags,
  request: { params: threadParams, query: streamQuery, body: jsonBody(runCreate) },
  responses: { 200: runEvents, ...errorResponses(404, 409, 413, 422) },
});

/** POST /threads/{thread_id}/runs/wait. Errors as in {@link createRun}; a failed run is 200. */
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

/** GET /threads/{thread_id}/runs/{run_id}. 404 also after a rollback, which deletes the run. */
export const getRun = createRoute({
  method: "get",
  path: "/threads/{thread_id}/runs/{run_id}",
  operationId: "getRun",
  summary: "Get a run",
  tags,
  request: { params: runParams },
  responses: { 200: jsonResponse(Run, "The run."), ...errorResponses(404, 422) },
});

/** DELETE /threads/{thread_id}/runs/{run_id}. 409: it is pending or running. */
export const deleteRun = createRoute({
  method: "delete",
  path: "/threads/{thread_id}/runs/{run_id}",
  operationId: "deleteRun",
  summary: "Delete a run",
  description: "Deletes the checkpoints that it wrote too. A pending or running run is refused: cancel it first.",
  tags,
  request: { params: runParams },
  responses: { 204: { description: "Deleted." }, ...errorResponses(404, 409, 422) },
});

/** GET /threads/{thread_id}/runs/{run_id}/join. Answers what that run ended with, also long after its end. */
export const joinRun = createRoute({
  method: "get",
  path: "/threads/{thread_id}/runs/{run_id}/join",
  operationId: "joinRun",
  summary: "Wait for the end of a run",
  tags,
  request: { params: runParams, query: joinQuery },
  responses: { 200: joinedOutput, ...errorResponses(404, 422) },
});

/** GET /threads/{thread_id}/runs/{run_id}/stream. The place to come back to after a broken stream. */
export const joinRunStream = createRoute({
  method: "get",
  path: "/threads/{thread_id}/runs/{run_id}/stream",
  operationId: "joinRunStream",
  summary: "Read the events of a run",
  tags,
  request: { params: runParams, query: joinStreamQuery, headers: resumeHeaders },
  responses: { 200: joinedEvents, ...errorResponses(404, 422) },
});

/** POST /threads/{thread_id}/runs/{run_id}/cancel. 409: it has ended; a paused run has ended too. */
export const cancelRun = createRoute({
  method: "post",
  path: "/threads/{thread_id}/runs/{run_id}/cancel",
  operationId: "cancelRun",
  summary: "Cancel a run",
  description:
    "`interrupt` keeps the run and its checkpoints. `rollback` deletes both and puts the thread back to where it " +
    "was. A run that has ended cannot be cancelled, and a paused one has ended.",
  tags,
  request: {
    params: runParams,
    query: z.object({
      wait: queryFlag("Answer only when the run has stopped."),
      action: CancelAction.default("interrupt"),
      reason: z.string().max(1000).optional().openapi({ description: "Kept as the run's cancel_reason." }),
    }),
  },
  responses: {
    202: { description: "The run will stop." },
    204: { description: "The run has stopped; asked for by `wait`." },
    ...errorResponses(404, 409, 422),
  },
});
