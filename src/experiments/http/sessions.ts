import { type BaseUrlOptions, baseUrlOf } from "../../platform/http/base-url.ts";
import { type App, jsonText } from "../../platform/http/route.ts";
import { runRoutes } from "../contract/runs.ts";
import { sessionRoutes } from "../contract/sessions.ts";
import { runShareRoutes, sharedRunRoutes } from "../contract/traces/run-shares.ts";
import { threadRoutes } from "../contract/traces/threads.ts";
import { experimentRoutesV2 } from "../contract/v2/routes.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import { apiUrlOf, type Routes, routesBelow } from "./route.ts";

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

/** Serves the shares of runs below the prefixes of version 1, and in version 2. */
export function serveRunShares(
  app: App,
  prefixes: readonly string[],
  v2: Routes,
  { runShares, sharedRuns }: ExperimentsService,
  base_url: BaseUrlOptions,
): void {
  const v1 = routesBelow(app, prefixes);
  const { readRunShare, shareRun, unshareRun } = runShareRoutes;
  v1.json(readRunShare, ({ caller, params }) => runShares.read(caller, params.run_id));
  v1.json(shareRun, ({ caller, params, body }) => runShares.share(caller, params.run_id, body.share_token));
  v1.deletion(unshareRun, "Share", ({ caller, params }) => runShares.unshare(caller, params.run_id));

  const { readShare, readSharedRun, listSharedRuns, querySharedRuns } = sharedRunRoutes;
  v1.json(readShare, ({ params, context }) =>
    sharedRuns.read(params.share_token, undefined, apiUrlOf(context, base_url)),
  );
  v1.json(readSharedRun, ({ params, context }) =>
    sharedRuns.read(params.share_token, params.run_id, apiUrlOf(context, base_url)),
  );
  v1.json(listSharedRuns, ({ params, query, context }) =>
    sharedRuns.list(params.share_token, query.id, apiUrlOf(context, base_url)),
  );
  v1.json(querySharedRuns, ({ params, body, context }) =>
    sharedRuns.query(params.share_token, body, apiUrlOf(context, base_url)),
  );
  // The JavaScript client 0.10.5 sends its query without a question mark.
  for (const prefix of prefixes)
    app.get(`${prefix}/public/:share_token/:list{runsshare_token=.*}`, async (context) => {
      const { share_token, list: text } = context.req.param();
      const ids = new URLSearchParams(text.slice("runs".length)).getAll("id");
      const url = apiUrlOf(context, base_url);
      const list = await sharedRuns.list(share_token, ids.length > 0 ? ids : undefined, url);
      return jsonText(list.json);
    });

  const { shareRunV2, unshareRunV2, querySharedRunsV2, readSharedRunV2 } = experimentRoutesV2;
  v2.json(shareRunV2, ({ caller, params }) => runShares.share(caller, params.run_id, undefined, true));
  v2.serve(unshareRunV2, async ({ caller, params, context }) => {
    await runShares.unshare(caller, params.run_id);
    return context.body(null, 204);
  });
  v2.json(querySharedRunsV2, ({ params, body }) => sharedRuns.queryV2(params.share_token, body.selects));
  v2.json(readSharedRunV2, ({ params, query }) => sharedRuns.readV2(params.share_token, params.run_id, query.selects));
}
