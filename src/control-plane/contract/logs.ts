import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonResponse, nullable, optional, timestamp } from "../../platform/contract/fields.ts";
import { laxTime, laxUuid, oneOf } from "../../platform/contract/lax-fields.ts";
import { operation, refusals } from "../../platform/contract/operation.ts";
import { deploymentParams, pageSize, revisionParams } from "./fields.ts";

const tags = ["Deployments (v2)"];

/** In ascending order of severity. A filter by level includes all higher levels. */
export const LOG_LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const DIRECTIONS = ["asc", "desc"] as const;

export const LogLine = z
  .object({
    id: z
      .string()
      .openapi({ description: "Unique and stable ID of the line. Clients can use it to deduplicate lines." }),
    timestamp,
    level: z.string(),
    message: z.string(),
    revision_id: z.string(),
    run_id: nullable(z.string()),
  })
  .openapi("LogLine");
export type LogLine = z.output<typeof LogLine>;

const cursor = z
  .string()
  .openapi({ description: "Cursor of the page to return: `next_offset` or `next_cursor` of the previous page." });
const nextCursor = nullable(z.string());

const filters = {
  query: z.string().optional().openapi({ description: "Text to search for in messages. Case is ignored." }),
  level: oneOf(LOG_LEVELS).optional().openapi({ description: "Minimum log level." }),
  run_id: z.string().optional(),
  start_time: laxTime.optional().openapi({ description: "Inclusive." }),
  end_time: laxTime.optional().openapi({ description: "Inclusive." }),
};

const page = {
  ...filters,
  order: oneOf(DIRECTIONS).default("asc").openapi({ default: "asc" }),
  limit: pageSize(1000, 50),
  offset: cursor.optional(),
};

const kind = oneOf(["build", "deploy"]);

const Logs = z
  .object({
    logs: z.array(LogLine),
    next_offset: nextCursor.openapi({
      description:
        "Cursor of the next page; null on the last page. Exception: if POST `build_logs` lists lines in ascending order, the last page also has a cursor while the revision is in progress.",
    }),
  })
  .openapi("LogsResponse");
export type Logs = z.output<typeof Logs>;

const lines = jsonResponse(Logs, "A page of log lines.");

const LogItems = z
  .object({
    items: z.array(LogLine),
    next_cursor: nextCursor.openapi({ description: "Cursor of the next page; null on the last page." }),
  })
  .openapi("DeploymentLogsResponse");

/** Body of the log requests that the command-line clients send. */
const LogsQuery = z
  .object({
    limit: optional(pageSize(1000, 50)),
    order: optional(oneOf(DIRECTIONS)),
    offset: optional(cursor),
    level: optional(oneOf(LOG_LEVELS)),
    query: optional(z.string()),
    start_time: optional(laxTime),
    end_time: optional(laxTime),
  })
  .openapi("LogsRequest");
export type LogsQuery = z.output<typeof LogsQuery>;

const v1 = {
  tags: ["Logs (v1)"],
  request: { params: revisionParams, body: jsonBody(LogsQuery) },
  responses: { 200: lines, ...refusals(400, 404) },
};

export const logRoutes = {
  getRevisionLogs: createRoute({
    ...operation("get_revision_logs", "get", "/v2/deployments/{deployment_id}/revisions/{revision_id}/logs"),
    summary: "List the log lines of a revision's build or instances",
    tags,
    request: { params: revisionParams, query: z.object({ type: kind, ...page }) },
    responses: { 200: lines, ...refusals(400, 404) },
  }),

  getLogs: createRoute({
    ...operation("get_deployment_logs", "get", "/v2/deployments/{deployment_id}/logs"),
    summary: "List the log lines of all revisions of a deployment",
    tags,
    request: {
      params: deploymentParams,
      query: z.object({ type: kind.default("deploy").openapi({ default: "deploy" }), ...page }),
    },
    responses: { 200: lines, ...refusals(400, 404) },
  }),

  listLogs: createRoute({
    ...operation("list_deployment_logs", "get", "/v2/deployment-logs"),
    summary: "List the log lines of a deployment or revision",
    tags,
    request: {
      query: z.object({
        deployment_id: laxUuid,
        revision_id: laxUuid.optional(),
        log_type: oneOf(["BUILD", "DEPLOY"]).default("DEPLOY").openapi({ default: "DEPLOY" }),
        sort_order: oneOf(DIRECTIONS).default("asc").openapi({ default: "asc" }),
        page_size: pageSize(100, 20),
        cursor: cursor.optional(),
        ...filters,
      }),
    },
    responses: { 200: jsonResponse(LogItems, "A page of log lines."), ...refusals(400, 404) },
  }),

  postBuildLogs: createRoute({
    ...operation("build_logs", "post", "/v1/projects/{deployment_id}/revisions/{revision_id}/build_logs"),
    summary: "List the log lines of a revision's build",
    ...v1,
  }),

  postRevisionDeployLogs: createRoute({
    ...operation("revision_deploy_logs", "post", "/v1/projects/{deployment_id}/revisions/{revision_id}/deploy_logs"),
    summary: "List the log lines of a revision's instances",
    ...v1,
  }),

  postDeployLogs: createRoute({
    ...operation("deploy_logs", "post", "/v1/projects/{deployment_id}/deploy_logs"),
    summary: "List the log lines of a deployment's instances",
    ...v1,
    request: { params: deploymentParams, body: jsonBody(LogsQuery) },
  }),
};
