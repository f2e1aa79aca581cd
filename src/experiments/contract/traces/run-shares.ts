import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonResponse, optional } from "../../../platform/contract/fields.ts";
import { uuidOrHex, uuids } from "../fields.ts";
import { deletedResponse, errors } from "../responses.ts";
import { ExperimentRun, RunPage, RunQuery, runParams } from "../runs.ts";

const RunShare = z.object({ run_id: z.string(), share_token: z.string() }).openapi("RunShare");

/** The official clients choose the token. */
const RunShareCreate = z.object({ share_token: optional(uuidOrHex) }).openapi("RunShareCreate");

const share = z.object({ share_token: uuidOrHex });

/** A shared root run includes its whole trace. Any other shared run includes all runs below it. */
export const runShareRoutes = {
  readRunShare: createRoute({
    method: "get",
    path: "/runs/{run_id}/share",
    operationId: "read_run_share",
    summary: "Get the share token of a run. The response is an empty object if the run is not shared.",
    request: { params: runParams },
    responses: { 200: jsonResponse(RunShare.partial(), "The share token."), ...errors(404) },
  }),

  shareRun: createRoute({
    method: "put",
    path: "/runs/{run_id}/share",
    operationId: "share_run",
    summary:
      "Share a run and all runs below it with everyone who has the token. If the run is already shared, its token is returned and `share_token` is ignored.",
    request: { params: runParams, body: jsonBody(RunShareCreate) },
    responses: { 200: jsonResponse(RunShare, "The share token."), ...errors(404, 409) },
  }),

  unshareRun: createRoute({
    method: "delete",
    path: "/runs/{run_id}/share",
    operationId: "unshare_run",
    summary: "Stop sharing a run",
    request: { params: runParams },
    responses: { 200: deletedResponse("The run is no longer shared."), ...errors(404) },
  }),
};

export const sharedRunRoutes = {
  readShare: createRoute({
    method: "get",
    path: "/public/{share_token}/run",
    operationId: "read_shared_run",
    summary: "Get the shared run",
    security: [],
    request: { params: share },
    responses: { 200: jsonResponse(ExperimentRun, "The run."), ...errors(404) },
  }),

  readSharedRun: createRoute({
    method: "get",
    path: "/public/{share_token}/run/{run_id}",
    operationId: "read_specific_shared_run",
    summary: "Get the shared run or a run below it",
    security: [],
    request: { params: share.extend({ run_id: uuidOrHex }) },
    responses: { 200: jsonResponse(ExperimentRun, "The run."), ...errors(404) },
  }),

  listSharedRuns: createRoute({
    method: "get",
    path: "/public/{share_token}/runs",
    operationId: "list_shared_runs",
    summary: "List the shared run and the runs below it (at most 1,000), ordered by start time",
    security: [],
    request: { params: share, query: z.object({ id: uuids.optional() }) },
    responses: { 200: jsonResponse(z.array(ExperimentRun), "The runs."), ...errors(404) },
  }),

  querySharedRuns: createRoute({
    method: "post",
    path: "/public/{share_token}/runs/query",
    operationId: "query_shared_runs",
    summary: "Query the shared run and the runs below it",
    security: [],
    request: { params: share, body: jsonBody(RunQuery) },
    responses: { 200: jsonResponse(RunPage, "A page of runs."), ...errors(400, 404) },
  }),
};
