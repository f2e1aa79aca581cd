import type { App } from "../../platform/http/route.ts";
import { experimentRoutes } from "../contract/routes.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import { deletedResponse, serveAt, serveJson } from "./route.ts";

export function serveDatasets(app: App, prefixes: readonly string[], { datasets, shared }: ExperimentsService): void {
  const routes = experimentRoutes.datasets;

  serveJson(app, prefixes, routes.listDatasets, ({ caller, query }) => datasets.list(caller, query));

  serveJson(app, prefixes, routes.createDataset, ({ caller, body }) => datasets.create(caller, body));

  serveJson(app, prefixes, routes.readDataset, ({ caller, params }) => datasets.read(caller, params.dataset_id));

  serveJson(app, prefixes, routes.updateDataset, ({ caller, params, body }) =>
    datasets.update(caller, params.dataset_id, body),
  );

  serveAt(app, prefixes, routes.deleteDataset, async ({ caller, params, context }) => {
    await datasets.delete(caller, params.dataset_id);
    return deletedResponse(context, "Dataset");
  });

  serveJson(app, prefixes, routes.listDatasetVersions, ({ caller, params, query }) =>
    datasets.versions(caller, params.dataset_id, query),
  );

  serveJson(app, prefixes, routes.readDatasetShare, ({ caller, params }) =>
    datasets.readShare(caller, params.dataset_id),
  );

  serveJson(app, prefixes, routes.shareDataset, ({ caller, params, query }) =>
    datasets.share(caller, params.dataset_id, query.share_projects),
  );

  serveAt(app, prefixes, routes.unshareDataset, async ({ caller, params, context }) => {
    await datasets.unshare(caller, params.dataset_id);
    return deletedResponse(context, "Share");
  });

  const { readSharedDataset, listSharedExamples, listSharedSessions } = experimentRoutes.shared;

  serveJson(app, prefixes, readSharedDataset, ({ params }) => shared.read(params.share_token));

  serveJson(app, prefixes, listSharedExamples, ({ params, query }) => shared.listExamples(params.share_token, query));

  serveJson(app, prefixes, listSharedSessions, ({ params, query }) => shared.listSessions(params.share_token, query));
}
