import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonResponse, withDefault } from "../../../platform/contract/fields.ts";
import { nullableTime, uuidOrHex } from "../fields.ts";
import { errors } from "../responses.ts";
import { datasetParams } from "./datasets.ts";
import { deletedExamples } from "./examples.ts";

const exampleIds = z
  .object({
    count: z.int(),
    example_ids: z.array(z.string()),
    as_of: nullableTime.describe("The dataset version that contains the changes."),
  })
  .openapi("ExampleIds");
export type ExampleIds = z.output<typeof exampleIds>;

const multipart = {
  required: true,
  content: {
    "multipart/form-data": {
      schema: z
        .record(z.string(), z.unknown())
        .describe(
          "The part `{id}` contains the fields of an example as JSON, except inputs and outputs, which are in the parts `{id}.inputs` " +
            "and `{id}.outputs`. `{id}.attachment.{name}` contains the bytes of an attachment, and `{id}.attachments_operations` defines " +
            "which attachments an update keeps or renames.",
        ),
    },
  },
};

const metadataOperation = z
  .object({
    key: z.string().min(1).max(255),
    operation: z
      .string()
      .toUpperCase()
      .pipe(z.enum(["SET", "ARRAY_ADD", "ARRAY_REMOVE"])),
    value: z.unknown().optional().describe("The new value for `SET`."),
    values: withDefault(z.array(z.string().max(255)).max(1000), []).describe(
      "The values that `ARRAY_ADD` adds or `ARRAY_REMOVE` removes.",
    ),
  })
  .openapi("MetadataOperation");
export type MetadataOperation = z.output<typeof metadataOperation>;

/** The key `dataset_split` refers to the splits of the example. */
const MetadataUpdate = z
  .object({
    example_ids: z.array(uuidOrHex).max(10_000),
    operations: z.array(metadataOperation).min(1).max(50),
  })
  .openapi("ExampleMetadataUpdate");

const metadataStatuses = z
  .object({
    statuses: z.array(
      z.object({ id: z.string(), status: z.enum(["UPDATED", "NOT_FOUND"]), description: z.string().optional() }),
    ),
  })
  .openapi("ExampleMetadataStatuses");
export type MetadataStatuses = z.output<typeof metadataStatuses>;

/** With a base URL that does not end with `/v1`, clients prepend `/v1` to these paths. */
export const platformExampleRoutes = {
  uploadExamples: createRoute({
    method: "post",
    path: "/platform/datasets/{dataset_id}/examples",
    operationId: "upload_examples",
    summary: "Add examples (multipart)",
    request: { params: datasetParams, body: multipart },
    responses: { 201: jsonResponse(exampleIds, "The IDs of the examples."), ...errors(400, 404, 409) },
  }),

  patchExamples: createRoute({
    method: "patch",
    path: "/platform/datasets/{dataset_id}/examples",
    operationId: "patch_examples",
    summary: "Update examples (multipart). Fields that are not sent are not changed.",
    request: { params: datasetParams, body: multipart },
    responses: { 200: jsonResponse(exampleIds, "The IDs of the examples."), ...errors(400, 404) },
  }),

  upsertExamples: createRoute({
    method: "post",
    path: "/platform/examples/multipart",
    operationId: "upsert_examples",
    summary: "Add or update examples (multipart). The part `{id}` must also contain the `dataset_id`.",
    request: { body: multipart },
    responses: { 201: jsonResponse(exampleIds, "The IDs of the examples."), ...errors(400, 404, 409) },
  }),

  updateExampleMetadata: createRoute({
    method: "patch",
    path: "/platform/datasets/{dataset_id}/examples/metadata",
    operationId: "update_example_metadata",
    summary: "Change the metadata or splits of several examples. Unknown and deleted examples are skipped.",
    request: { params: datasetParams, body: jsonBody(MetadataUpdate) },
    responses: { 207: jsonResponse(metadataStatuses, "The status of each example."), ...errors(404) },
  }),

  deleteExampleOfDataset: createRoute({
    method: "delete",
    path: "/platform/datasets/{dataset_id}/examples/{example_id}",
    operationId: "delete_example_of_dataset",
    summary: "Delete an example from a dataset. Deleting it again has no effect.",
    request: { params: datasetParams.extend({ example_id: uuidOrHex }) },
    responses: { 200: deletedExamples, ...errors(404) },
  }),

  eraseExamples: createRoute({
    method: "post",
    path: "/platform/datasets/examples/delete",
    operationId: "erase_examples",
    summary: "Delete several examples. With `hard_delete`, all their versions and attachments are also deleted.",
    request: {
      body: jsonBody(
        z.object({ example_ids: z.array(uuidOrHex).max(1000), hard_delete: withDefault(z.boolean(), false) }),
      ),
    },
    responses: { 200: deletedExamples, ...errors(404) },
  }),
};
