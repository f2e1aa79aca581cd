import type { BaseUrlOptions } from "../../platform/http/base-url.ts";
import { type App, jsonText } from "../../platform/http/route.ts";
import { runShareRoutes, sharedRunRoutes } from "../contract/traces/run-shares.ts";
import { experimentRoutesV2 } from "../contract/v2/routes.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import { apiUrlOf, type Routes, routesBelow } from "./route.ts";

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
