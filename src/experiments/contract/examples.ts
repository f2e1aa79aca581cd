import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonObject, jsonResponse, nullable, optional, searchable } from "../../platform/contract/fields.ts";
import { datasetParams } from "./datasets.ts";
import { metadataQuery, oneOrMore, paging, texts, time, timeText, uuidOrHex, uuids } from "./fields.ts";
import { deletedResponse, errors } from "./responses.ts";

const FIELDS = [
  "id",
  "created_at",
  "modified_at",
  "name",
  "dataset_id",
  "source_run_id",
  "metadata",
  "inputs",
  "outputs",
] as const;

/** Inputs, and the expected outputs. */
export const Example = z
  .object({
    id: z.string(),
    dataset_id: z.string(),
    name: z.string(),
    inputs: jsonObject,
    outputs: jsonObject.nullable(),
    metadata: jsonObject.nullable().describe("`dataset_split` lists the splits of the example."),
    source_run_id: z.string().nullable(),
    attachment_urls: z.null(),
    created_at: timeText,
    modified_at: timeText,
  })
  .openapi("Example");
export type Example = z.output<typeof Example>;

const asOf = z.union([z.literal("latest"), time]).default("latest");

/** `as_of` selects the version of the dataset at that time. */
const filters = {
  id: uuids.optional(),
  dataset: uuidOrHex.optional(),
  as_of: asOf,
  metadata: metadataQuery.optional(),
  splits: texts.optional(),
  full_text_contains: texts.optional(),
  filter: z
    .string()
    .optional()
    .describe('A filter on metadata and text, for example `has(metadata, \'{"level": 1}\')` or `search("word")`.'),
};

const ExampleQuery = z.object({
  ...filters,
  select: oneOrMore(z.array(z.enum([...FIELDS, "attachment_urls"])))
    .optional()
    .describe("The fields to return. `id`, `dataset_id`, `inputs`, `name` and the timestamps are always returned."),
  order: z.enum(["recent", "random", "recently_created", "id"]).default("recent"),
  descending: z.stringbool().optional(),
  random_seed: z.coerce.number().optional(),
  ...paging,
});
export type ExampleQuery = z.output<typeof ExampleQuery>;

export const listExamples = createRoute({
  method: "get",
  path: "/examples",
  operationId: "list_examples",
  summary: "List examples",
  request: { query: ExampleQuery },
  responses: { 200: jsonResponse(z.array(Example), "A page of examples."), ...errors() },
});

const ExampleCount = z.object(filters);
export type ExampleCount = z.output<typeof ExampleCount>;

export const countExamples = createRoute({
  method: "get",
  path: "/examples/count",
  operationId: "count_examples",
  summary: "Count examples",
  request: { query: ExampleCount },
  responses: { 200: jsonResponse(z.int(), "The number of examples."), ...errors() },
});

/** The splits of an example: a list, or one name. */
export const exampleSplits = z.preprocess(
  (given) => (typeof given === "string" ? [given] : given),
  z.array(z.string()),
);

export const ExampleCreate = z
  .object({
    id: optional(uuidOrHex),
    inputs: jsonObject,
    outputs: optional(jsonObject),
    metadata: optional(searchable),
    split: optional(exampleSplits),
    source_run_id: optional(uuidOrHex),
    created_at: optional(time),
  })
  .openapi("ExampleCreate");
export type ExampleCreate = z.output<typeof ExampleCreate>;

const ExampleOfDataset = ExampleCreate.extend({ dataset_id: uuidOrHex }).openapi("ExampleOfDatasetCreate");

export const createExample = createRoute({
  method: "post",
  path: "/examples",
  operationId: "create_example",
  summary: "Add an example to a dataset",
  request: { body: jsonBody(ExampleOfDataset) },
  responses: { 200: jsonResponse(Example, "The example."), ...errors(400, 404, 409) },
});

/** Adds all examples, or none. */
export const createExamples = createRoute({
  method: "post",
  path: "/examples/bulk",
  operationId: "create_examples",
  summary: "Add several examples",
  request: { body: jsonBody(z.array(ExampleOfDataset).max(10_000)) },
  responses: {
    200: jsonResponse(z.array(Example), "The examples, in the order of the request."),
    ...errors(400, 404, 409),
  },
});

const exampleIds = z.object({ count: z.int(), example_ids: z.array(z.string()) }).openapi("ExampleIds");

const multipart = {
  required: true,
  content: {
    "multipart/form-data": {
      schema: z
        .record(z.string(), z.unknown())
        .describe(
          "The part `{id}` contains an example's metadata and split as JSON. The parts `{id}.inputs` and `{id}.outputs` contain its inputs and outputs.",
        ),
    },
  },
};

export const uploadExamples = createRoute({
  method: "post",
  path: "/platform/datasets/{dataset_id}/examples",
  operationId: "upload_examples",
  summary: "Add examples (multipart)",
  request: { params: datasetParams, body: multipart },
  responses: { 201: jsonResponse(exampleIds, "The ids of the examples."), ...errors(400, 404, 409) },
});

export const patchExamples = createRoute({
  method: "patch",
  path: "/platform/datasets/{dataset_id}/examples",
  operationId: "patch_examples",
  summary: "Update examples (multipart). Missing parts keep their values.",
  request: { params: datasetParams, body: multipart },
  responses: { 200: jsonResponse(exampleIds, "The ids of the examples."), ...errors(400, 404) },
});

const exampleParams = z.object({ example_id: uuidOrHex });

export const readExample = createRoute({
  method: "get",
  path: "/examples/{example_id}",
  operationId: "read_example",
  summary: "Get an example",
  request: { params: exampleParams, query: z.object({ as_of: asOf, dataset: uuidOrHex.optional() }) },
  responses: { 200: jsonResponse(Example, "The example."), ...errors(404) },
});

/** Missing fields keep their values. A change creates a new version; existing runs keep the old version. */
export const ExampleUpdate = z
  .object({
    inputs: optional(jsonObject),
    outputs: nullable(jsonObject).optional(),
    metadata: nullable(searchable).optional(),
    split: optional(exampleSplits),
  })
  .openapi("ExampleUpdate");
export type ExampleUpdate = z.output<typeof ExampleUpdate>;

export const updateExample = createRoute({
  method: "patch",
  path: "/examples/{example_id}",
  operationId: "update_example",
  summary: "Update an example",
  request: { params: exampleParams, body: jsonBody(ExampleUpdate) },
  responses: { 200: jsonResponse(Example, "The updated example."), ...errors(404) },
});

const deleted = deletedResponse("Deleted. Older versions of the dataset keep the example.");

export const deleteExample = createRoute({
  method: "delete",
  path: "/examples/{example_id}",
  operationId: "delete_example",
  summary: "Delete an example. Existing runs keep their inputs.",
  request: { params: exampleParams },
  responses: { 200: deleted, ...errors(404) },
});

export const deleteExamples = createRoute({
  method: "delete",
  path: "/examples",
  operationId: "delete_examples",
  summary: "Delete several examples: all, or none if an ID is unknown",
  request: { query: z.object({ example_ids: uuids }) },
  responses: { 200: deleted, ...errors(404) },
});
