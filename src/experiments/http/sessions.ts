import { type BaseUrlOptions, baseUrlOf } from "../../platform/http/base-url.ts";
import { experimentRoutes, experimentRoutesV2 } from "../contract/routes.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import type { Routes } from "./route.ts";

export function serveSessions(v1: Routes, { sessions }: ExperimentsService): void {
  const routes = experimentRoutes.sessions;

  v1.json(routes.listSessions, ({ caller, query }) => sessions.list(caller, query));
  v1.json(routes.createSession, ({ caller, query, body }) => sessions.create(caller, body, query.upsert));

  v1.json(routes.readSession, ({ caller, params, query }) =>
    sessions.read(caller, params.session_id, query.include_stats),
  );

  v1.json(routes.updateSession, ({ caller, params, body }) => sessions.update(caller, params.session_id, body));
  v1.deletion(routes.deleteSession, "Session", ({ caller, params }) => sessions.delete(caller, params.session_id));
}

export function serveRuns(v1: Routes, v2: Routes, { runs }: ExperimentsService, base_url: BaseUrlOptions): void {
  const routes = experimentRoutes.runs;

  v1.json(routes.queryRuns, ({ caller, body }) => runs.query(caller, body));
  v1.json(routes.readRunStats, ({ caller, body }) => runs.stats(caller, body));
  v1.json(routes.readRun, ({ caller, params, context }) =>
    runs.read(caller, params.run_id, `${baseUrlOf(context, base_url)}/api/v1`),
  );
  v2.json(experimentRoutesV2.queryRunsV2, ({ caller, body }) => runs.queryV2(caller, body));

  v2.json(experimentRoutesV2.readRunV2, ({ caller, params, query }) =>
    runs.readV2(caller, params.run_id, query.project_id, query.selects),
  );
}
