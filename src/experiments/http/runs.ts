import { type App, jsonText } from "../../platform/http/route.ts";
import { experimentRoutes, experimentRoutesV2 } from "../contract/routes.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import { serveAt } from "./route.ts";

export function serveRuns(app: App, v1: readonly string[], v2: readonly string[], { runs }: ExperimentsService): void {
  const routes = experimentRoutes.runs;

  serveAt(app, v1, routes.queryRuns, async ({ caller, body }) => jsonText((await runs.query(caller, body)).json));

  serveAt(app, v1, routes.readRunStats, async ({ caller, body }) => jsonText((await runs.stats(caller, body)).json));

  serveAt(app, v1, routes.readRun, async ({ caller, params }) =>
    jsonText((await runs.read(caller, params.run_id)).json),
  );

  serveAt(app, v2, experimentRoutesV2.queryRunsV2, async ({ caller, body }) =>
    jsonText((await runs.queryV2(caller, body)).json),
  );

  serveAt(app, v2, experimentRoutesV2.readRunV2, async ({ caller, params, query }) =>
    jsonText((await runs.readV2(caller, params.run_id, query.project_id, query.selects)).json),
  );
}
