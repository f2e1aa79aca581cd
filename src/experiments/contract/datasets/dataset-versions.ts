import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonResponse, withDefault } from "../../../platform/contract/fields.ts";
import { microsecondsOf } from "../../../platform/lib/times.ts";
import { asOf, LATEST, paging, timeText, uuidOrHex } from "../fields.ts";
import { errors } from "../responses.ts";
import { datasetParams } from "./datasets.ts";

/** The state of a dataset after a change of its examples. The newest version has the tag `latest`. */
const DatasetVersion = z.object({ tags: z.array(z.string()).nullable(), as_of: timeText }).openapi("DatasetVersion");
export type DatasetVersion = z.output<typeof DatasetVersion>;

const VersionQuery = z.object({
  search: z.string().optional().describe("Returns only versions with a tag that contains this text."),
  example: uuidOrHex.optional().describe("Returns only versions in which this example changed."),
  ...paging,
});
export type VersionQuery = z.output<typeof VersionQuery>;

const VersionSelector = z
  .object({ as_of: asOf.optional(), tag: z.string().min(1).optional() })
  .refine(({ as_of, tag }) => (as_of === undefined) !== (tag === undefined), "send either as_of or tag");
export type VersionSelector = z.output<typeof VersionSelector>;

const tag = z
  .string()
  .min(1)
  .max(200)
  .refine((text) => text !== LATEST, "must not be `latest`, which always refers to the newest version")
  .refine(
    (text) => microsecondsOf(text) === undefined,
    "must not be a date or timestamp, because `as_of` would interpret it as a time",
  );

const TagUpdate = z.object({ as_of: asOf, tag }).openapi("DatasetTagUpdate");
export type TagUpdate = z.output<typeof TagUpdate>;

const DatasetDiff = z
  .object({
    examples_modified: z.array(z.string()),
    examples_added: z.array(z.string()),
    examples_removed: z.array(z.string()),
  })
  .openapi("DatasetDiff");
export type DatasetDiff = z.output<typeof DatasetDiff>;

const SplitUpdate = z
  .object({
    split_name: z.string().min(1).max(255),
    examples: z.array(uuidOrHex).max(10_000),
    remove: withDefault(z.boolean(), false),
  })
  .openapi("DatasetSplitUpdate");
export type SplitUpdate = z.output<typeof SplitUpdate>;

const splits = z.array(z.string());

export const datasetVersionRoutes = {
  listDatasetVersions: createRoute({
    method: "get",
    path: "/datasets/{dataset_id}/versions",
    operationId: "list_dataset_versions",
    summary: "List the versions of a dataset, newest first",
    request: { params: datasetParams, query: VersionQuery },
    responses: {
      200: jsonResponse(
        z.array(DatasetVersion),
        "A page of versions. Each version is identified by the time of the change that created it.",
      ),
      ...errors(404),
    },
  }),

  diffDatasetVersions: createRoute({
    method: "get",
    path: "/datasets/{dataset_id}/versions/diff",
    operationId: "diff_dataset_versions",
    summary: "List the examples that differ between two versions of a dataset",
    request: { params: datasetParams, query: z.object({ from_version: asOf, to_version: asOf }) },
    responses: { 200: jsonResponse(DatasetDiff, "The IDs of the examples."), ...errors(404) },
  }),

  readDatasetVersion: createRoute({
    method: "get",
    path: "/datasets/{dataset_id}/version",
    operationId: "read_dataset_version",
    summary: "Get the newest version at or before a given time, or the version with a given tag",
    request: { params: datasetParams, query: VersionSelector },
    responses: { 200: jsonResponse(DatasetVersion, "The version."), ...errors(404) },
  }),

  listDatasetTags: createRoute({
    method: "get",
    path: "/datasets/{dataset_id}/tags",
    operationId: "list_dataset_tags",
    summary: "List the tagged versions of a dataset, oldest first",
    request: { params: datasetParams },
    responses: { 200: jsonResponse(z.array(DatasetVersion), "The versions with their tags."), ...errors(404) },
  }),

  updateDatasetTag: createRoute({
    method: "put",
    path: "/datasets/{dataset_id}/tags",
    operationId: "update_dataset_tag",
    summary:
      "Tag the newest version at or before a given time. If another version already has the tag, the tag is moved.",
    request: { params: datasetParams, body: jsonBody(TagUpdate) },
    responses: { 200: jsonResponse(DatasetVersion, "The version with its tags."), ...errors(404) },
  }),

  listDatasetSplits: createRoute({
    method: "get",
    path: "/datasets/{dataset_id}/splits",
    operationId: "list_dataset_splits",
    summary: "List the names of a dataset's splits",
    request: { params: datasetParams, query: z.object({ as_of: asOf.default(LATEST) }) },
    responses: { 200: jsonResponse(splits, "The names, in alphabetical order."), ...errors(404) },
  }),

  updateDatasetSplits: createRoute({
    method: "put",
    path: "/datasets/{dataset_id}/splits",
    operationId: "update_dataset_splits",
    summary: "Add examples to a split, or remove them from it. If any ID is unknown, no example is changed.",
    request: { params: datasetParams, body: jsonBody(SplitUpdate) },
    responses: { 200: jsonResponse(splits, "The names of the dataset's splits."), ...errors(404) },
  }),
};
