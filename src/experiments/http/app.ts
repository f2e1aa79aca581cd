import { OpenAPIHono, type RouteConfig } from "@hono/zod-openapi";
import type { BaseUrlOptions } from "../../platform/http/base-url.ts";
import type { App } from "../../platform/http/route.ts";
import type { Log } from "../../platform/lib/log.ts";
import { EXPERIMENT_TAGS, experimentRoutes, experimentRoutesV2, experimentsDocument } from "../contract/routes.ts";
import type { ExperimentsInfo } from "../contract/system.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import { serveComparison } from "./comparison.ts";
import { serveDatasets } from "./datasets.ts";
import { serveExamples } from "./examples.ts";
import { serveFeedback } from "./feedback.ts";
import { routesBelow } from "./route.ts";
import { serveRuns, serveSessions } from "./sessions.ts";
import { serveAttachments, serveTraces, type TraceRoutesOptions } from "./traces.ts";
import { serveUpload } from "./upload.ts";

export interface ExperimentsAppOptions extends BaseUrlOptions {
  experiments: ExperimentsService;
  experiments_info: ExperimentsInfo;
  upload_limit_bytes: number;
  log: Log;
}

/** Clients may have a base URL with or without `/api/v1`. */
const V1 = ["/api/v1", ""];

export function serveExperiments(
  app: App,
  { experiments, experiments_info, upload_limit_bytes, log, public_url, prefix }: ExperimentsAppOptions,
) {
  const v1 = routesBelow(app, V1);
  // The generated part of the official clients uses `/api/v2`, the published description `/v2`.
  const v2 = routesBelow(app, ["/api/v2", "/v2"]);
  serveUpload(app, V1, experiments, { limit_bytes: upload_limit_bytes, log });
  serveComparison(v1, v2, experiments);
  serveDatasets(v1, experiments);
  serveExamples(v1, routesBelow(app, ["/api/v1", "/v1"]), experiments);
  serveSessions(v1, experiments);
  serveRuns(v1, v2, experiments, { public_url, prefix });
  serveFeedback(v1, experiments);
  serveAttachments(app, V1, experiments);
  const { experimentsInfo } = experimentRoutes.system;
  routesBelow(app, ["/api/v1"]).serve(experimentsInfo, ({ context }) => context.json(experiments_info));
  app.get("/api/v1/openapi.json", (context) => context.json(openApiDocument()));
}

/**
 * The ingestion of traces. It comes before the routes of the agent server: at the root, both have `POST /runs` and `POST /runs/batch`,
 * and the body decides.
 */
export const serveIngestion = (app: App, options: TraceRoutesOptions): void => serveTraces(app, V1, options);

/** Each route with its first prefix. */
function openApiDocument() {
  const document = new OpenAPIHono();
  const register = (prefix: string, tag: string, routes: Record<string, RouteConfig>) => {
    for (const route of Object.values(routes))
      document.openAPIRegistry.registerPath({ ...route, tags: [tag], path: `${prefix}${route.path}` });
  };
  for (const [group, tag] of Object.entries(EXPERIMENT_TAGS))
    register("/api/v1", tag, experimentRoutes[group as keyof typeof EXPERIMENT_TAGS]);
  register("/api/v2", "Version 2", experimentRoutesV2);
  return document.getOpenAPI31Document(experimentsDocument);
}
