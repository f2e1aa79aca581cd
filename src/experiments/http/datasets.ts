import { type App, jsonText } from "../../platform/http/route.ts";
import { experimentRoutes } from "../contract/routes.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import { gone } from "./gone.ts";
import { serveAt } from "./route.ts";

export function serveDatasets(app: App, at: readonly string[], { datasets, shared }: ExperimentsService): void {
  const routes = experimentRoutes.datasets;

  serveAt(app, at, routes.listDatasets, async ({ caller, query }) =>
    jsonText((await datasets.list(caller, query)).json),
  );

  serveAt(app, at, routes.createDataset, async ({ caller, body }) =>
    jsonText((await datasets.create(caller, body)).json),
  );

  serveAt(app, at, routes.readDataset, async ({ caller, params }) =>
    jsonText((await datasets.read(caller, params.dataset_id)).json),
  );

  serveAt(app, at, routes.updateDataset, async ({ caller, params, body }) =>
    jsonText((await datasets.update(caller, params.dataset_id, body)).json),
  );

  serveAt(app, at, routes.deleteDataset, async ({ caller, params, context }) => {
    await datasets.delete(caller, params.dataset_id);
    return gone(context, "Dataset");
  });

  serveAt(app, at, routes.listDatasetVersions, async ({ caller, params, query }) =>
    jsonText((await datasets.versions(caller, params.dataset_id, query)).json),
  );

  serveAt(app, at, routes.readDatasetShare, async ({ caller, params }) =>
    jsonText((await datasets.readShare(caller, params.dataset_id)).json),
  );

  serveAt(app, at, routes.shareDataset, async ({ caller, params, query }) =>
    jsonText((await datasets.share(caller, params.dataset_id, query.share_projects)).json),
  );

  serveAt(app, at, routes.unshareDataset, async ({ caller, params, context }) => {
    await datasets.unshare(caller, params.dataset_id);
    return gone(context, "Share");
  });

  const { readSharedDataset, listSharedExamples, listSharedSessions } = experimentRoutes.shared;

  serveAt(app, at, readSharedDataset, async ({ params }) => jsonText((await shared.read(params.share_token)).json));

  serveAt(app, at, listSharedExamples, async ({ params, query }) =>
    jsonText((await shared.listExamples(params.share_token, query)).json),
  );

  serveAt(app, at, listSharedSessions, async ({ params, query }) =>
    jsonText((await shared.listSessions(params.share_token, query)).json),
  );
}
