import type { Context } from "hono";
import type { Env } from "../../platform/http/route.ts";
import { datasetFileRoutes } from "../contract/datasets/dataset-files.ts";
import { datasetVersionRoutes } from "../contract/datasets/dataset-versions.ts";
import { datasetRoutes } from "../contract/datasets/datasets.ts";
import { sharedDatasetRoutes } from "../contract/datasets/shared-datasets.ts";
import type { AsOf } from "../contract/fields.ts";
import { experimentRoutesV2 } from "../contract/v2/routes.ts";
import type { FormBody } from "../datasets/form.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import type { Routes } from "./route.ts";

export function serveDatasets(v1: Routes, v2: Routes, { datasets, shared }: ExperimentsService): void {
  const routes = datasetRoutes;

  v2.json(experimentRoutesV2.listDatasetsV2, ({ caller, query }) => datasets.listV2(caller, query));

  v1.json(routes.listDatasets, ({ caller, query }) => datasets.list(caller, query));
  v1.json(routes.createDataset, ({ caller, body }) => datasets.create(caller, body));
  v1.json(routes.readDataset, ({ caller, params }) => datasets.read(caller, params.dataset_id));
  v1.json(routes.updateDataset, ({ caller, params, body }) => datasets.update(caller, params.dataset_id, body));
  v1.deletion(routes.deleteDataset, "Dataset", ({ caller, params }) => datasets.delete(caller, params.dataset_id));

  v1.json(routes.readDatasetShare, ({ caller, params }) => datasets.readShare(caller, params.dataset_id));

  v1.json(routes.shareDataset, ({ caller, params, query }) =>
    datasets.share(caller, params.dataset_id, query.share_projects),
  );

  v1.deletion(routes.unshareDataset, "Share", ({ caller, params }) => datasets.unshare(caller, params.dataset_id));

  const { readSharedDataset, listSharedExamples, listSharedSessions } = sharedDatasetRoutes;

  v1.json(readSharedDataset, ({ params }) => shared.read(params.share_token));
  v1.json(listSharedExamples, ({ params, query }) => shared.listExamples(params.share_token, query));
  v1.json(listSharedSessions, ({ params, query }) => shared.listSessions(params.share_token, query));
}

export function serveDatasetVersions(v1: Routes, { datasetVersions: versions }: ExperimentsService): void {
  const routes = datasetVersionRoutes;

  v1.json(routes.listDatasetVersions, ({ caller, params, query }) => versions.list(caller, params.dataset_id, query));
  v1.json(routes.diffDatasetVersions, ({ caller, params, query }) => versions.diff(caller, params.dataset_id, query));

  v1.json(routes.readDatasetVersion, ({ caller, params, query: { as_of, tag } }) =>
    versions.read(caller, params.dataset_id, (tag ?? as_of) as AsOf),
  );

  v1.json(routes.listDatasetTags, ({ caller, params }) => versions.tags(caller, params.dataset_id));
  v1.json(routes.updateDatasetTag, ({ caller, params, body }) => versions.updateTag(caller, params.dataset_id, body));

  v1.json(routes.listDatasetSplits, ({ caller, params, query }) =>
    versions.splits(caller, params.dataset_id, query.as_of),
  );

  v1.json(routes.updateDatasetSplits, ({ caller, params, body }) =>
    versions.updateSplits(caller, params.dataset_id, body),
  );
}

const CONTENT_TYPES = {
  csv: "text/csv; charset=utf-8",
  jsonl: "application/jsonl",
  openai: "application/jsonl",
  openai_ft: "application/jsonl",
};

export function serveDatasetFiles(v1: Routes, { datasetFiles: files }: ExperimentsService): void {
  const { uploadCsvDataset, ...downloads } = datasetFileRoutes;

  v1.json(uploadCsvDataset, async ({ caller, context }) => files.uploadCsv(caller, ...(await formOf(context))));

  for (const format of ["csv", "jsonl", "openai", "openai_ft"] as const)
    v1.serve(downloads[format], async ({ caller, params, query }) => {
      const file = (await files.openDownload(caller, params.dataset_id, format, query.as_of)).value();
      const encoder = new TextEncoder();
      let after = -1;
      const body = new ReadableStream<Uint8Array>({
        async pull(controller) {
          const { text, next } = (await files.readDownload(caller, file, after)).value();
          if (text !== "") controller.enqueue(encoder.encode(text));
          if (next === null) controller.close();
          else after = next;
        },
      });
      const extension = format === "csv" ? "csv" : "jsonl";
      return new Response(body, {
        headers: {
          "content-type": CONTENT_TYPES[format],
          "content-disposition": `attachment; filename="dataset-${params.dataset_id}.${extension}"`,
        },
      });
    });
}

/** Returns the content type and the bytes of a multipart body, which a worker thread parses. */
export const formOf = async ({ req }: Context<Env>): Promise<FormBody> => [
  req.header("content-type") ?? "",
  new Uint8Array(await req.arrayBuffer()),
];
