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

/** DELETE /threads/{thread_id}/runs/{run_id}. 409: it, or another run of the thread, is pending or running. */
export const deleteRun = createRoute({
  method: "delete",
  path: "/threads/{thread_id}/runs/{run_id}",
  operationId: "deleteRun",
  summary: "Delete a run",
  description:
    "Deletes the checkpoints that it wrote too. Refused while this or another run of the thread is pending or running.",
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

const cancelByIds = z.object({ thread_id: uuid, run_ids: z.array(uuid).min(1).max(1000) });
const cancelByStatus = z.object({ status: z.enum(["pending", "running", "all"]) });
const cancelKeys = ["thread_id", "run_ids", "status"] as const;

/** Which runs to cancel: those named, of one thread, or all with a status. */
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
      thread_id: { type: "string", format: "uuid", description: "With `run_ids`: their thread." },
      run_ids: { type: "array", items: { type: "string", format: "uuid" }, description: "All of these, or none." },
      status: {
        type: "string",
        enum: ["pending", "running", "all"],
        description: "Instead: all runs with this status.",
      },
    },
  });
export type RunCancelMany = z.output<typeof runCancelMany>;

/** POST /runs/cancel. 404: one of the runs is unknown; 409: one has ended; then none is cancelled. */
export const cancelRuns = createRoute({
  method: "post",
  path: "/runs/cancel",
  operationId: "cancelRuns",
  summary: "Cancel several runs",
  description:
    "Either runs of one thread, all or none, or by status over all threads; then there may be nothing to cancel. " +
    "Answers when the cancels are durable; the runs stop soon after.",
  tags,
  request: { query: z.object({ action: CancelAction.default("interrupt") }), body: jsonBody(runCancelMany) },
  responses: { 204: { description: "The runs will stop." }, ...errorResponses(404, 409, 422) },
});
