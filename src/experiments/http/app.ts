import { OpenAPIHono, type RouteConfig } from "@hono/zod-openapi";
import type { App } from "../../platform/http/route.ts";
import type { Log } from "../../platform/lib/log.ts";
import { experimentRoutes, experimentRoutesV2, experimentsDocument } from "../contract/routes.ts";
import type { ExperimentsInfo } from "../contract/system.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import { serveComparison } from "./comparison.ts";
import { serveDatasets } from "./datasets.ts";
import { serveExamples } from "./examples.ts";
import { serveFeedback } from "./feedback.ts";
import { serveAt } from "./route.ts";
import { serveRuns, serveSessions } from "./sessions.ts";
import { serveUpload } from "./upload.ts";

export interface ExperimentsAppOptions {
  experiments: ExperimentsService;
  experiments_info: ExperimentsInfo;
  upload_limit_bytes: number;
  log: Log;
}

/** The prefixes of version 1: clients may have a base URL with or without `/api/v1`. */
const V1 = ["/api/v1", ""] as const;

/** The generated part of the official clients uses `/api/v2`, the published description `/v2`. */
const V2 = ["/api/v2", "/v2"] as const;

export function serveExperiments(
  app: App,
  { experiments, experiments_info, upload_limit_bytes, log }: ExperimentsAppOptions,
) {
  serveUpload(app, V1, experiments, { limit_bytes: upload_limit_bytes, log });
  serveComparison(app, V1, V2, experiments);
  serveDatasets(app, V1, experiments);
  serveExamples(app, V1, experiments);
  serveSessions(app, V1, experiments);
  serveRuns(app, V1, V2, experiments);
  serveFeedback(app, V1, experiments);
  serveAt(app, ["/api/v1"], experimentRoutes.system.experimentsInfo, ({ context }) => context.json(experiments_info));
  app.get("/api/v1/openapi.json", (context) => context.json(openApiDocument()));
}

/** Each route with its first prefix. */
function openApiDocument() {
  const document = new OpenAPIHono();
  const register = (prefix: string, route: RouteConfig) =>
    document.openAPIRegistry.registerPath({ ...route, path: `${prefix}${route.path}` });
  for (const routes of Object.values(experimentRoutes))
    for (const route of Object.values(routes)) register("/api/v1", route);
  for (const route of Object.values(experimentRoutesV2)) register("/api/v2", route);
  return document.getOpenAPI31Document(experimentsDocument);
}
