import { experimentRoutes } from "../contract/routes.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import type { Routes } from "./route.ts";

export function serveDatasets(v1: Routes, { datasets, shared }: ExperimentsService): void {
  const routes = experimentRoutes.datasets;

  v1.json(routes.listDatasets, ({ caller, query }) => datasets.list(caller, query));
  v1.json(routes.createDataset, ({ caller, body }) => datasets.create(caller, body));
  v1.json(routes.readDataset, ({ caller, params }) => datasets.read(caller, params.dataset_id));
  v1.json(routes.updateDataset, ({ caller, params, body }) => datasets.update(caller, params.dataset_id, body));
  v1.deletion(routes.deleteDataset, "Dataset", ({ caller, params }) => datasets.delete(caller, params.dataset_id));

  v1.json(routes.listDatasetVersions, ({ caller, params, query }) =>
    datasets.versions(caller, params.dataset_id, query),
  );

  v1.json(routes.readDatasetShare, ({ caller, params }) => datasets.readShare(caller, params.dataset_id));

  v1.json(routes.shareDataset, ({ caller, params, query }) =>
    datasets.share(caller, params.dataset_id, query.share_projects),
  );

  v1.deletion(routes.unshareDataset, "Share", ({ caller, params }) => datasets.unshare(caller, params.dataset_id));

  const { readSharedDataset, listSharedExamples, listSharedSessions } = experimentRoutes.shared;

  v1.json(readSharedDataset, ({ params }) => shared.read(params.share_token));
  v1.json(listSharedExamples, ({ params, query }) => shared.listExamples(params.share_token, query));
  v1.json(listSharedSessions, ({ params, query }) => shared.listSessions(params.share_token, query));
}
