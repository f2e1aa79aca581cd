import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonObject, jsonResponse, optional } from "../../../platform/contract/fields.ts";
import { Dataset, DatasetQuery, datasetParams } from "../datasets/datasets.ts";
import { Example } from "../datasets/examples.ts";
import { paging, texts, time, unsupported, uuidOrHex } from "../fields.ts";
import { runParams } from "../runs.ts";
import { Thread } from "../traces/threads.ts";

import { ExperimentRunsQuery, pageOf, publicSelects, RunQueryV2, RunV2, selects } from "./runs.ts";
import {
  ThreadQueryV2,
  ThreadStats,
  ThreadStatsQuery,
  ThreadTrace,
  ThreadTracesQuery,
  threadParams,
} from "./threads.ts";

/** RFC 7807 problem details. */
const problem = z
  .object({ type: z.string(), title: z.string(), status: z.int(), detail: z.string(), instance: z.string().optional() })
  .openapi("ProblemDetails");

const problemResponse = {
  description: "The reason for the error.",
  content: { "application/problem+json": { schema: problem } },
};
const problems = { 400: problemResponse, 404: problemResponse, 422: problemResponse };

const exampleWithRunsV2 = z
  .object({ ...Example.shape, metadata: jsonObject.nullable(), runs: z.array(RunV2.partial()) })
  .openapi("ExampleWithRunsV2");

const DatasetQueryV2 = DatasetQuery.omit({ limit: true, offset: true, sort_by_desc: true }).extend({
  sort_order: z.enum(["asc", "desc"]).default("desc"),
  exclude: texts.optional().describe("Fields to exclude. Only `example_count` can be excluded; it is then null."),
  tag_value_id: unsupported(() => false, "resource tags are not supported").optional(),
  page_size: paging.limit,
  cursor: z.string().optional(),
});
export type DatasetQueryV2 = z.output<typeof DatasetQueryV2>;

const datasetPage = z
  .object({
    items: z.array(Dataset.extend({ example_count: z.int().nullable() })),
    next_cursor: z.string().nullable(),
  })
  .openapi("DatasetPage");

export const experimentRoutesV2 = {
  listDatasetsV2: createRoute({
    method: "get",
    path: "/datasets",
    operationId: "list_datasets_v2",
    summary: "List datasets. Datasets without a value for the `sort_by` field come last.",
    request: { query: DatasetQueryV2 },
    responses: { 200: jsonResponse(datasetPage, "A page of datasets."), ...problems },
  }),

  queryRunsV2: createRoute({
    method: "post",
    path: "/runs/query",
    operationId: "query_runs_v2",
    summary: "Query runs",
    request: { body: jsonBody(RunQueryV2) },
    responses: { 200: jsonResponse(pageOf(RunV2.partial()), "A page of runs."), ...problems },
  }),

  readRunV2: createRoute({
    method: "get",
    path: "/runs/{run_id}",
    operationId: "read_run_v2",
    summary: "Get a run",
    request: {
      params: runParams,
      query: z.object({ project_id: uuidOrHex, start_time: time.optional(), selects }),
    },
    responses: { 200: jsonResponse(RunV2.partial(), "The run."), ...problems },
  }),

  shareRunV2: createRoute({
    method: "post",
    path: "/runs/{run_id}/share",
    operationId: "share_run_v2",
    summary: "Share the trace of a run",
    request: { params: runParams, body: jsonBody(z.object({})) },
    responses: { 200: jsonResponse(z.object({ share_token: z.string() }), "The share token."), ...problems },
  }),

  unshareRunV2: createRoute({
    method: "delete",
    path: "/runs/{run_id}/share",
    operationId: "unshare_run_v2",
    summary: "Stop sharing a trace. The path contains the ID of its root run",
    request: { params: runParams },
    responses: { 204: { description: "The trace is no longer shared." }, ...problems },
  }),

  querySharedRunsV2: createRoute({
    method: "post",
    path: "/public/{share_token}/runs/query",
    operationId: "query_shared_runs_v2",
    summary: "List the runs of a shared trace, ordered by start time",
    security: [],
    request: {
      params: z.object({ share_token: uuidOrHex }),
      body: jsonBody(z.object({ selects: optional(publicSelects) })),
    },
    responses: { 200: jsonResponse(z.object({ items: z.array(RunV2.partial()) }), "The runs."), ...problems },
  }),

  readSharedRunV2: createRoute({
    method: "get",
    path: "/public/{share_token}/run/{run_id}",
    operationId: "read_shared_run_v2",
    summary: "Get a run of a shared trace",
    security: [],
    request: {
      params: runParams.extend({ share_token: uuidOrHex }),
      query: z.object({ selects: texts.pipe(publicSelects).optional() }),
    },
    responses: { 200: jsonResponse(RunV2.partial(), "The run."), ...problems },
  }),

  queryThreadsV2: createRoute({
    method: "post",
    path: "/threads/query",
    operationId: "query_threads_v2",
    summary: "List the threads of a project. The thread with the most recently started trace comes first",
    request: { body: jsonBody(ThreadQueryV2) },
    responses: { 200: jsonResponse(pageOf(Thread), "A page of threads."), ...problems },
  }),

  listThreadTracesV2: createRoute({
    method: "get",
    path: "/threads/{thread_id}/traces",
    operationId: "list_thread_traces_v2",
    summary: "List the traces of a thread, oldest first",
    request: { params: threadParams, query: ThreadTracesQuery },
    responses: { 200: jsonResponse(pageOf(ThreadTrace.partial()), "A page of traces."), ...problems },
  }),

  readThreadStatsV2: createRoute({
    method: "get",
    path: "/threads/{thread_id}/stats",
    operationId: "read_thread_stats_v2",
    summary: "Get the statistics of a thread",
    request: { params: threadParams, query: ThreadStatsQuery },
    responses: { 200: jsonResponse(ThreadStats.partial(), "The selected statistics."), ...problems },
  }),

  queryExperimentRuns: createRoute({
    method: "post",
    path: "/datasets/{dataset_id}/experiment-runs",
    operationId: "query_experiment_runs",
    summary: "List examples with the runs of several experiments",
    request: { params: datasetParams, body: jsonBody(ExperimentRunsQuery) },
    responses: { 200: jsonResponse(pageOf(exampleWithRunsV2), "A page of examples."), ...problems },
  }),
};
