import { OpenAPIHono, type RouteConfig } from "@hono/zod-openapi";
import type { BaseUrlOptions } from "../../platform/http/base-url.ts";
import type { App } from "../../platform/http/route.ts";
import type { Log } from "../../platform/lib/log.ts";
import { experimentRoutes, experimentsDocument } from "../contract/routes.ts";
import { type ExperimentsInfo, systemRoutes } from "../contract/system.ts";
import { experimentRoutesV2 } from "../contract/v2/routes.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import { serveAnnotationQueues } from "./annotation-queues.ts";
import { serveComparison } from "./comparison.ts";
import { serveDatasetFiles, serveDatasets, serveDatasetVersions } from "./datasets.ts";
import { serveExamples, servePlatformExamples } from "./examples.ts";
import { serveFeedback } from "./feedback.ts";
import { refuseNotOffered } from "./not-offered.ts";
import { type ReadWorkspace, servePrompts } from "./prompts.ts";
import { routesBelow } from "./route.ts";
import { serveRunShares, serveRuns, serveSessions } from "./sessions.ts";
import { serveAttachments, servePrices, serveTraces, type TraceRoutesOptions } from "./traces.ts";
import { serveUpload, UPLOAD_PATH } from "./upload.ts";

export interface ExperimentsAppOptions extends BaseUrlOptions {
  experiments: ExperimentsService;
  experiments_info: ExperimentsInfo;
  upload_limit_bytes: number;
  readWorkspace: ReadWorkspace;
  log: Log;
}

/** Clients may have a base URL with or without `/api/v1`. */
const V1 = ["/api/v1", ""];

const OWN_LIMITS = new Set(
  [UPLOAD_PATH, "/runs/multipart", "/otel/v1/traces"].flatMap((path) => V1.map((mount) => `${mount}${path}`)),
);

/** Whether a route has its own limit for the request body. The whole path counts: others contain IDs and names. */
export const hasOwnLimit = (method: string, path: string | undefined): boolean =>
  method === "POST" && path !== undefined && OWN_LIMITS.has(path);

export function serveExperiments(
  app: App,
  { experiments, experiments_info, upload_limit_bytes, readWorkspace, log, public_url, prefix }: ExperimentsAppOptions,
) {
  const v1 = routesBelow(app, V1);
  // The generated part of the official clients uses `/api/v2`, the published description `/v2`.
  const v2 = routesBelow(app, ["/api/v2", "/v2"]);
  refuseNotOffered(app);
  serveUpload(app, V1, experiments, { limit_bytes: upload_limit_bytes, log });
  const base_url = { public_url, prefix };
  serveComparison(v1, v2, experiments, base_url);
  serveDatasetFiles(v1, experiments);
  serveDatasetVersions(v1, experiments);
  serveDatasets(v1, v2, experiments);
  serveExamples(v1, experiments, base_url);
  // Clients whose base URL does not contain `/api/v1` request `/v1/platform`.
  const platform = routesBelow(app, ["/api/v1", "/v1"]);
  servePlatformExamples(platform, experiments);
  serveSessions(v1, experiments);
  serveRuns(v1, v2, experiments, base_url);
  serveRunShares(app, V1, v2, experiments, base_url);
  serveFeedback(v1, experiments, base_url);
  serveAttachments(app, V1, experiments);
  serveAnnotationQueues(v1, platform, experiments, base_url);
  servePrompts(v1, experiments, readWorkspace);
  servePrices(v1, experiments);
  const { experimentsInfo } = systemRoutes;
  routesBelow(app, ["/api/v1"]).serve(experimentsInfo, ({ context }) => context.json(experiments_info));
  app.get("/api/v1/openapi.json", (context) => context.json(experimentsOpenApi()));
}

/**
 * Serves trace ingestion. Must be called before the routes of the agent server are added: at the root, both have `POST /runs` and `POST
 * /runs/batch`, and the request body determines which of them responds.
 */
export const serveIngestion = (app: App, options: TraceRoutesOptions): void => serveTraces(app, V1, options);

/** Returns the OpenAPI document, which contains each route once, with its first prefix. */
export function experimentsOpenApi() {
  const document = new OpenAPIHono();
  const register = (prefix: string, tag: string, routes: Record<string, RouteConfig>) => {
    for (const route of Object.values(routes))
      document.openAPIRegistry.registerPath({ ...route, tags: [tag], path: `${prefix}${route.path}` });
  };
  for (const [tag, routes] of Object.entries(experimentRoutes)) register("/api/v1", tag, routes);
  register("/api/v2", "Version 2", experimentRoutesV2);
  return document.getOpenAPI31Document(experimentsDocument);
}
