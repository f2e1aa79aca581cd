import type { App } from "../../platform/http/route.ts";
import { experimentRoutes, experimentRoutesV2 } from "../contract/routes.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import { deletedResponse, serveAt, serveJson } from "./route.ts";

export function serveSessions(app: App, prefixes: readonly string[], { sessions }: ExperimentsService): void {
  const routes = experimentRoutes.sessions;

  serveJson(app, prefixes, routes.listSessions, ({ caller, query }) => sessions.list(caller, query));

  serveJson(app, prefixes, routes.createSession, ({ caller, query, body }) =>
    sessions.create(caller, body, query.upsert),
  );

  serveJson(app, prefixes, routes.readSession, ({ caller, params, query }) =>
    sessions.read(caller, params.session_id, query.include_stats),
  );

  serveJson(app, prefixes, routes.updateSession, ({ caller, params, body }) =>
    sessions.update(caller, params.session_id, body),
  );

  serveAt(app, prefixes, routes.deleteSession, async ({ caller, params, context }) => {
    await sessions.delete(caller, params.session_id);
    return deletedResponse(context, "Session");
  });
}

export function serveRuns(app: App, v1: readonly string[], v2: readonly string[], { runs }: ExperimentsService): void {
  const routes = experimentRoutes.runs;

  serveJson(app, v1, routes.queryRuns, ({ caller, body }) => runs.query(caller, body));

  serveJson(app, v1, routes.readRunStats, ({ caller, body }) => runs.stats(caller, body));

  serveJson(app, v1, routes.readRun, ({ caller, params }) => runs.read(caller, params.run_id));

  serveJson(app, v2, experimentRoutesV2.queryRunsV2, ({ caller, body }) => runs.queryV2(caller, body));

  serveJson(app, v2, experimentRoutesV2.readRunV2, ({ caller, params, query }) =>
    runs.readV2(caller, params.run_id, query.project_id, query.selects),
  );
}
