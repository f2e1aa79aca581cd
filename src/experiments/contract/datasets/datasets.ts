import { createRoute, z } from "@hono/zod-openapi";
import {
  jsonBody,
  jsonObject,
  jsonResponse,
  nullable,
  optional,
  queryFlag,
  searchable,
  withDefault,
} from "../../../platform/contract/fields.ts";
import {
  indexedName,
  metadataQuery,
  nullableTime,
  oneOrMore,
  paging,
  timeText,
  unsupported,
  uuidOrHex,
  uuids,
} from "../fields.ts";
import { deletedResponse, errors } from "../responses.ts";

const DataType = z.enum(["kv", "llm", "chat"]);

/** A set of examples. An `externally_managed` dataset gets its examples only from uploaded results. */
export const Dataset = z
  .object({
    id: z.string(),
    tenant_id: z.string(),
    name: z.string(),
    description: z.string().nullable(),
    data_type: DataType,
    externally_managed: z.boolean(),
    inputs_schema_definition: jsonObject.nullable(),
    outputs_schema_definition: jsonObject.nullable(),
    transformations: z.array(jsonObject).nullable().describe("Transformations are not supported."),
    metadata: jsonObject.nullable(),
    baseline_experiment_id: z.string().nullable(),
    example_count: z.int(),
    session_count: z.int(),
    created_at: timeText,
    modified_at: timeText,
    last_session_start_time: nullableTime,
  })
  .openapi("Dataset");
export type Dataset = z.output<typeof Dataset>;

export const datasetParams = z.object({ dataset_id: uuidOrHex });

export const DatasetQuery = z.object({
  id: uuids.optional(),
  data_type: oneOrMore(z.array(DataType)).optional(),
  name: z.string().optional(),
  name_contains: z.string().optional(),
  metadata: metadataQuery.optional(),
  sort_by: z
    .enum(["name", "created_at", "last_session_start_time", "example_count", "session_count", "modified_at"])
    .default("last_session_start_time"),
  sort_by_desc: z.stringbool().default(true),
  ...paging,
});
export type DatasetQuery = z.output<typeof DatasetQuery>;

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

const noTransformations = unsupported(
  isEmptyList,
  "transformations are not supported: transform the inputs and outputs before you send them",
).optional();

const DatasetCreate = z
  .object({
    id: optional(uuidOrHex),
    name: indexedName,
    description: optional(z.string()),
    data_type: withDefault(DataType, "kv"),
    inputs_schema_definition: optional(jsonObject),
    outputs_schema_definition: optional(jsonObject),
    transformations: noTransformations,
    extra: optional(jsonObject),
    metadata: optional(searchable),
    tag_value_ids: unsupported(isEmptyList, "resource tags are not supported").optional(),
  })
  .openapi("DatasetCreate");
export type DatasetCreate = z.output<typeof DatasetCreate>;

/** Missing fields keep their values. Null removes the value of a nullable field. */
const DatasetUpdate = z
  .object({
    name: optional(indexedName),
    description: nullable(z.string()).optional(),
    inputs_schema_definition: nullable(jsonObject).optional(),
    outputs_schema_definition: nullable(jsonObject).optional(),
    transformations: noTransformations,
    metadata: nullable(searchable).optional(),
    baseline_experiment_id: nullable(uuidOrHex)
      .optional()
      .describe("The baseline experiment, with which other experiments of this dataset are compared."),
  })
  .openapi("DatasetUpdate");
export type DatasetUpdate = z.output<typeof DatasetUpdate>;

const share = z.object({ dataset_id: z.string(), share_token: z.string() }).openapi("DatasetShare");

export const datasetRoutes = {
  listDatasets: createRoute({
    method: "get",
    path: "/datasets",
    operationId: "list_datasets",
    summary: "List datasets",
    request: { query: DatasetQuery },
    responses: { 200: jsonResponse(z.array(Dataset), "A page of datasets."), ...errors() },
  }),

  createDataset: createRoute({
    method: "post",
    path: "/datasets",
    operationId: "create_dataset",
    summary: "Create an empty dataset",
    request: { body: jsonBody(DatasetCreate) },
    responses: { 200: jsonResponse(Dataset, "The dataset."), ...errors(409) },
  }),

  readDataset: createRoute({
    method: "get",
    path: "/datasets/{dataset_id}",
    operationId: "read_dataset",
    summary: "Get a dataset",
    request: { params: datasetParams },
    responses: { 200: jsonResponse(Dataset, "The dataset."), ...errors(404) },
  }),

  updateDataset: createRoute({
    method: "patch",
    path: "/datasets/{dataset_id}",
    operationId: "update_dataset",
    summary: "Update a dataset or set its baseline",
    request: { params: datasetParams, body: jsonBody(DatasetUpdate) },
    responses: { 200: jsonResponse(Dataset, "The updated dataset."), ...errors(404, 409) },
  }),

  deleteDataset: createRoute({
    method: "delete",
    path: "/datasets/{dataset_id}",
    operationId: "delete_dataset",
    summary: "Delete a dataset with its examples and experiments",
    request: { params: datasetParams },
    responses: { 200: deletedResponse("The dataset was deleted."), ...errors(404) },
  }),

  readDatasetShare: createRoute({
    method: "get",
    path: "/datasets/{dataset_id}/share",
    operationId: "read_dataset_share",
    summary: "Get the share token of a dataset",
    request: { params: datasetParams },
    responses: {
      200: jsonResponse(share.nullable(), "The share token; null if the dataset is not shared."),
      ...errors(404),
    },
  }),

  shareDataset: createRoute({
    method: "put",
    path: "/datasets/{dataset_id}/share",
    operationId: "share_dataset",
    summary: "Share a dataset with everyone who has its share token",
    request: {
      params: datasetParams,
      query: z.object({ share_projects: queryFlag("Whether to also share the dataset's experiments.") }),
    },
    responses: {
      200: jsonResponse(share, "The share token. Sharing a dataset again returns the same token."),
      ...errors(404),
    },
  }),

  unshareDataset: createRoute({
    method: "delete",
    path: "/datasets/{dataset_id}/share",
    operationId: "unshare_dataset",
    summary: "Revoke the share token of a dataset",
    request: { params: datasetParams },
    responses: {
      200: deletedResponse("The dataset is no longer shared."),
      ...errors(404),
    },
  }),
};
