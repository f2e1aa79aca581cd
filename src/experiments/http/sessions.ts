import { type BaseUrlOptions, baseUrlOf } from "../../platform/http/base-url.ts";
import { runRoutes } from "../contract/runs.ts";
import { sessionRoutes } from "../contract/sessions.ts";
import { threadRoutes } from "../contract/traces/threads.ts";
import { experimentRoutesV2 } from "../contract/v2/routes.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import { apiUrlOf, type Routes } from "./route.ts";

export function serveSessions(v1: Routes, { sessions }: ExperimentsService): void {
  const routes = sessionRoutes;

  v1.json(routes.listSessions, ({ caller, query }) => sessions.list(caller, query));
  v1.json(routes.createSession, ({ caller, query, body }) => sessions.create(caller, body, query.upsert));

  v1.json(routes.readSession, ({ caller, params, query }) =>
    sessions.read(caller, params.session_id, query.include_stats),
  );

  v1.json(routes.updateSession, ({ caller, params, body }) => sessions.update(caller, params.session_id, body));
  v1.deletion(routes.deleteSession, "Session", ({ caller, params }) => sessions.delete(caller, params.session_id));
}

export function serveRuns(
  v1: Routes,
  v2: Routes,
  { runs, threads }: ExperimentsService,
  base_url: BaseUrlOptions,
): void {
  const routes = runRoutes;

  v1.json(routes.queryRuns, ({ caller, body, context }) => runs.query(caller, body, apiUrlOf(context, base_url)));
  v1.json(routes.readRunStats, ({ caller, body }) => runs.stats(caller, body));
  v1.json(routes.readRun, ({ caller, params, context }) =>
    runs.read(caller, params.run_id, apiUrlOf(context, base_url)),
  );
  v1.json(threadRoutes.groupRuns, ({ caller, body }) => threads.group(caller, body));

  const { queryThreadsV2, listThreadTracesV2, readThreadStatsV2 } = experimentRoutesV2;
  v2.json(queryThreadsV2, ({ caller, body }) => threads.query(caller, body));
  v2.json(listThreadTracesV2, ({ caller, params, query }) => threads.traces(caller, params.thread_id, query));
  v2.json(readThreadStatsV2, ({ caller, params, query }) => threads.stats(caller, params.thread_id, query));

  v2.json(experimentRoutesV2.queryRunsV2, ({ caller, body, context }) =>
    runs.queryV2(caller, body, baseUrlOf(context, base_url)),
  );

  v2.json(experimentRoutesV2.readRunV2, ({ caller, params, query, context }) =>
    runs.readV2(caller, params.run_id, query, baseUrlOf(context, base_url)),
  );
}
