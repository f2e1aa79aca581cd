import { createRoute, z } from "@hono/zod-openapi";
import { errorResponses, jsonBody, jsonResponse, uuid } from "../../platform/contract/fields.ts";
import { Run } from "./records.ts";
import { runBatchCreate, statelessRunCreate } from "./run-create.ts";
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

const tags = ["Stateless Runs"];
const params = z.object({ run_id: uuid });

/** POST /runs. 404: no such assistant. */
export const createStatelessRun = createRoute({
  method: "post",
  path: "/runs",
  operationId: "createStatelessRun",
  summary: "Create a stateless run",
  description: "Runs on a thread of its own, which nobody else sees.",
  tags,
  request: { body: jsonBody(statelessRunCreate) },
  responses: { 200: runCreated, ...errorResponses(404, 413, 422) },
});

/** POST /runs/stream. Errors come before the stream starts. */
export const createStatelessRunStream = createRoute({
  method: "post",
  path: "/runs/stream",
  operationId: "createStatelessRunStream",
  summary: "Create a stateless run and read its events",
  tags,
  request: { query: streamQuery, body: jsonBody(statelessRunCreate) },
  responses: { 200: runEvents, ...errorResponses(404, 413, 422) },
});

/** POST /runs/wait. A failed run is 200. */
export const createStatelessRunWait = createRoute({
  method: "post",
  path: "/runs/wait",
  operationId: "createStatelessRunWait",
  summary: "Create a stateless run and wait for its end",
  tags,
  request: { query: waitQuery, body: jsonBody(statelessRunCreate) },
  responses: { 200: runOutput, ...errorResponses(404, 413, 422) },
});

/** POST /runs/batch. The runs are answered in the order of the bodies. 404: one of the assistants is unknown. */
export const createRunBatch = createRoute({
  method: "post",
  path: "/runs/batch",
  operationId: "createRunBatch",
  summary: "Create several stateless runs",
  tags,
  request: { body: jsonBody(runBatchCreate) },
  responses: { 200: jsonResponse(z.array(Run), "The runs, in the order asked for."), ...errorResponses(404, 413, 422) },
});

/** GET /runs/{run_id}/join. Where a broken wait goes on. */
export const joinStatelessRun = createRoute({
  method: "get",
  path: "/runs/{run_id}/join",
  operationId: "joinStatelessRun",
  summary: "Wait for the end of a stateless run",
  tags,
  request: { params, query: joinQuery },
  responses: { 200: joinedOutput, ...errorResponses(404, 422) },
});

/** GET /runs/{run_id}/stream. Where a broken stream goes on. */
export const joinStatelessRunStream = createRoute({
  method: "get",
  path: "/runs/{run_id}/stream",
  operationId: "joinStatelessRunStream",
  summary: "Read the events of a stateless run",
  tags,
  request: { params, query: joinStreamQuery, headers: resumeHeaders },
  responses: { 200: joinedEvents, ...errorResponses(404, 422) },
});
