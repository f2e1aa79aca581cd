import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonObject, jsonResponse, nullable, optional, searchable } from "../../platform/contract/fields.ts";
import { datasetParams } from "./datasets.ts";
import { errors, looseUuid, metadataQuery, paging, texts, time, timeText, uuids } from "./fields.ts";

const tags = ["Examples"];

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

/** What an experiment is tried on: inputs, and the outputs that are expected of them. */
export const Example = z
  .object({
    id: z.string(),
    dataset_id: z.string(),
    name: z.string(),
    inputs: jsonObject,
    outputs: jsonObject.nullable(),
    metadata: jsonObject.nullable().openapi({ description: "`dataset_split` in it is the list of its splits." }),
    source_run_id: z.string().nullable(),
    attachment_urls: z.null(),
    created_at: timeText,
    modified_at: timeText,
  })
  .openapi("Example");
export type Example = z.output<typeof Example>;

const asOf = z.union([z.literal("latest"), time]).default("latest");

/** Which examples. `as_of` shows the dataset as it was at that moment. */
const filters = {
  id: uuids.optional(),
  dataset: looseUuid.optional(),
  as_of: asOf,
  metadata: metadataQuery.optional(),
  splits: texts.optional(),
  full_text_contains: texts.optional(),
  filter: z.string().optional().openapi({
    description: "Such as `has(metadata, '{\"level\": 1}')`: about metadata, and `search` for words.",
  }),
};

const ExampleQuery = z.object({
  ...filters,
  select: z
    .preprocess((given) => (Array.isArray(given) ? given : [given]), z.array(z.enum([...FIELDS, "attachment_urls"])))
    .optional()
    .openapi({ description: "Answer with these fields, and id, dataset_id, inputs, name and times in any case." }),
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
  summary: "Find examples",
  tags,
  request: { query: ExampleQuery },
  responses: { 200: jsonResponse(z.array(Example), "A page."), ...errors() },
});

const ExampleCount = z.object(filters);
export type ExampleCount = z.output<typeof ExampleCount>;

export const countExamples = createRoute({
  method: "get",
  path: "/examples/count",
  operationId: "count_examples",
  summary: "How many there are",
  tags,
  request: { query: ExampleCount },
  responses: { 200: jsonResponse(z.int(), "The number."), ...errors() },
});

/** The splits that an example is in; one of them may be a bare text. */
export const exampleSplits = z.preprocess(
  (given) => (typeof given === "string" ? [given] : given),
  z.array(z.string()),
);

/** A new example; `dataset_id` says where. */
export const ExampleCreate = z
  .object({
    id: optional(looseUuid),
    inputs: jsonObject,
    outputs: optional(jsonObject),
    metadata: optional(searchable),
    split: optional(exampleSplits),
    source_run_id: optional(looseUuid),
    created_at: optional(time),
  })
  .openapi("ExampleCreate");
export type ExampleCreate = z.output<typeof ExampleCreate>;

const ExampleOfDataset = ExampleCreate.extend({ dataset_id: looseUuid }).openapi("ExampleOfDatasetCreate");

export const createExample = createRoute({
  method: "post",
  path: "/examples",
  operationId: "create_example",
  summary: "Add an example to a dataset",
  tags,
  request: { body: jsonBody(ExampleOfDataset) },
  responses: { 200: jsonResponse(Example, "The example."), ...errors(400, 404, 409) },
});

/** Several at once; with `id` a list keeps them in order. All are added, or none. */
export const createExamples = createRoute({
  method: "post",
  path: "/examples/bulk",
  operationId: "create_examples",
  summary: "Add several examples",
  tags,
  request: { body: jsonBody(z.array(ExampleOfDataset).max(10_000)) },
  responses: { 200: jsonResponse(z.array(Example), "The examples."), ...errors(400, 404, 409) },
});

/** What the multipart routes answer. */
const exampleIds = z.object({ count: z.int(), example_ids: z.array(z.string()) }).openapi("ExampleIds");

const multipart = {
  required: true,
  content: {
    "multipart/form-data": {
      schema: z.record(z.string(), z.unknown()).openapi({
        description:
          "A part an example, named by its id: JSON with metadata and split; `{id}.inputs` and `{id}.outputs` hold those.",
      }),
    },
  },
};

export const uploadExamples = createRoute({
  method: "post",
  path: "/platform/datasets/{dataset_id}/examples",
  operationId: "upload_examples",
  summary: "Add examples, as the official clients send them",
  tags,
  request: { params: datasetParams, body: multipart },
  responses: { 201: jsonResponse(exampleIds, "Their ids."), ...errors(400, 404, 409) },
});

export const patchExamples = createRoute({
  method: "patch",
  path: "/platform/datasets/{dataset_id}/examples",
  operationId: "patch_examples",
  summary: "Change examples, as the official clients send it; parts that are not there stay",
  tags,
  request: { params: datasetParams, body: multipart },
  responses: { 200: jsonResponse(exampleIds, "Their ids."), ...errors(400, 404) },
});

const exampleParams = z.object({ example_id: looseUuid });

export const readExample = createRoute({
  method: "get",
  path: "/examples/{example_id}",
  operationId: "read_example",
  summary: "One example",
  tags,
  request: { params: exampleParams, query: z.object({ as_of: asOf, dataset: looseUuid.optional() }) },
  responses: { 200: jsonResponse(Example, "The example."), ...errors(404) },
});

/** Fields that are not there stay as they are. A change makes a new version; what ran before keeps the old one. */
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
  summary: "Change an example",
  tags,
  request: { params: exampleParams, body: jsonBody(ExampleUpdate) },
  responses: { 200: jsonResponse(Example, "The example as it is now."), ...errors(404) },
});

const gone = jsonResponse(z.object({ message: z.string() }), "Gone, from the newest version of the dataset on.");

export const deleteExample = createRoute({
  method: "delete",
  path: "/examples/{example_id}",
  operationId: "delete_example",
  summary: "Remove an example; results keep what they were tried on",
  tags,
  request: { params: exampleParams },
  responses: { 200: gone, ...errors(404) },
});

export const deleteExamples = createRoute({
  method: "delete",
  path: "/examples",
  operationId: "delete_examples",
  summary: "Remove several examples: all, or none when one is unknown",
  tags,
  request: { query: z.object({ example_ids: uuids }) },
  responses: { 200: gone, ...errors(404) },
});
