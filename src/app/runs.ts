import { appRunRoutes } from "../agent-server/contract/app-runs.ts";
import type { RunOverview } from "../agent-server/index.ts";
import { byPart } from "../platform/http/fastapi-errors.ts";
import { type App, answer } from "../platform/http/route.ts";

/** Runs over all threads, which no route of the agent server lists. */
export function serveAppRuns(app: App, overview: RunOverview): void {
  answer(
    app,
    appRunRoutes.listAllRuns,
    async ({ caller, query, context }) => context.json(await overview.list(caller, query)),
    byPart,
  );

  answer(
    app,
    appRunRoutes.getRunThroughput,
    async ({ caller, context }) => context.json(await overview.throughput(caller)),
    byPart,
  );
}
