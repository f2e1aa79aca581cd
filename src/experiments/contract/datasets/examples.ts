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
  asOf,
  fewTexts,
  LATEST,
  metadataQuery,
  oneOrMore,
  paging,
  time,
  timeText,
  unsupported,
  uuidOrHex,
  uuids,
} from "../fields.ts";
import { deletedResponse, errors } from "../responses.ts";

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
  "attachment_urls",
] as const;

/** An example: its inputs and the expected outputs. */
export const Example = z
  .object({
    id: z.string(),
    dataset_id: z.string(),
    name: z.string(),
    inputs: jsonObject,
    outputs: jsonObject.nullable(),
    metadata: jsonObject.describe(
      "`dataset_split` lists the splits of the example. An example without a split is in `base`.",
    ),
    source_run_id: z.string().nullable(),
    attachment_urls: z
      .record(z.string(), z.object({ presigned_url: z.string(), mime_type: z.string() }))
      .nullable()
      .describe("The attachments, keyed by `attachment.{name}`. Null in lists unless this field is selected."),
    created_at: timeText,
    modified_at: timeText,
  })
  .openapi("Example");
export type Example = z.output<typeof Example>;

const version = asOf.default(LATEST);

/** `as_of` selects a version of the dataset. */
const filters = {
  id: uuids.optional(),
  dataset: uuidOrHex.optional(),
  as_of: version,
  metadata: metadataQuery.optional(),
  splits: fewTexts.optional(),
  full_text_contains: fewTexts.optional(),
  filter: z
    .string()
    .optional()
    .describe('A filter on metadata and text, for example `has(metadata, \'{"level": 1}\')` or `search("word")`.'),
};

const ExampleQuery = z.object({
  ...filters,
  select: oneOrMore(z.array(z.enum(FIELDS)))
    .optional()
    .describe(
      "The fields to return. `dataset_id`, `inputs`, `name` and the timestamps are added unless `exclude_default_fields` is set.",
    ),
  exclude_default_fields: queryFlag("Whether to return only the selected fields and `id`."),
  order: z.enum(["recent", "random", "recently_created", "id"]).default("recent"),
  descending: z.stringbool().optional(),
  random_seed: z.coerce.number().optional(),
  ...paging,
});
export type ExampleQuery = z.output<typeof ExampleQuery>;

const ExampleCount = z.object(filters);
export type ExampleCount = z.output<typeof ExampleCount>;

/** The splits of an example: a list, or one name. */
export const exampleSplits = z.preprocess(
  (given) => (typeof given === "string" ? [given] : given),
  z.array(z.string()),
);

const FROM_RUN = "`use_source_run_io` and `use_source_run_attachments` require a `source_run_id`";

/** A new example requires `inputs`, unless `use_source_run_io` copies them from the source run. */
export const ExampleCreate = z
  .object({
    id: optional(uuidOrHex),
    inputs: optional(jsonObject),
    outputs: optional(jsonObject),
    metadata: optional(searchable),
    split: optional(exampleSplits),
    source_run_id: optional(uuidOrHex),
    use_source_run_io: withDefault(z.boolean(), false).describe(
      "Whether to copy inputs, outputs and attachments from the source run.",
    ),
    use_source_run_attachments: withDefault(z.array(z.string()), []).describe(
      "The names of attachments to copy from the source run.",
    ),
    use_legacy_message_format: unsupported(
      (value) => value === false,
      "`use_legacy_message_format` is not supported: examples keep the message format of their source run",
    ).optional(),
    created_at: optional(time),
  })
  .superRefine(({ inputs, source_run_id, use_source_run_io, use_source_run_attachments }, context) => {
    const uses = use_source_run_io || use_source_run_attachments.length > 0;
    if (uses && source_run_id === undefined)
      context.addIssue({ code: "custom", path: ["source_run_id"], message: FROM_RUN, input: source_run_id });
    if (!inputs && !use_source_run_io)
      context.addIssue({ code: "invalid_type", expected: "record", path: ["inputs"], input: inputs });
  })
  .openapi("ExampleCreate");
export type ExampleCreate = z.output<typeof ExampleCreate>;

const ExampleOfDataset = ExampleCreate.safeExtend({ dataset_id: uuidOrHex }).openapi("ExampleOfDatasetCreate");

const exampleParams = z.object({ example_id: uuidOrHex });

export const MAX_ATTACHMENT_NAME = 200;

/** Missing fields keep their values. A change creates a new version; existing runs keep the old version. */
export const ExampleUpdate = z
  .object({
    inputs: optional(jsonObject),
    outputs: nullable(jsonObject).optional(),
    metadata: nullable(searchable).optional(),
    split: optional(exampleSplits),
    attachments_operations: optional(
      z.object({
        rename: withDefault(z.record(z.string(), z.string().min(1).max(MAX_ATTACHMENT_NAME)), {}),
        retain: withDefault(z.array(z.string()), []),
      }),
    ).describe(
      "Attachments that are neither renamed nor retained are removed. If this field is omitted, all attachments are kept.",
    ),
  })
  .openapi("ExampleUpdate");
export type ExampleUpdate = z.output<typeof ExampleUpdate>;

const ExampleOfBulkUpdate = ExampleUpdate.extend({ id: uuidOrHex }).openapi("ExampleOfBulkUpdate");

export const deletedExamples = deletedResponse(
  "The deletion succeeded. Older versions of the dataset still contain the examples, except after a request with `hard_delete`.",
);

export const exampleRoutes = {
  listExamples: createRoute({
    method: "get",
    path: "/examples",
    operationId: "list_examples",
    summary: "List examples",
    request: { query: ExampleQuery },
    responses: { 200: jsonResponse(z.array(Example), "A page of examples."), ...errors() },
  }),

  countExamples: createRoute({
    method: "get",
    path: "/examples/count",
    operationId: "count_examples",
    summary: "Count examples",
    request: { query: ExampleCount },
    responses: { 200: jsonResponse(z.int(), "The number of examples."), ...errors() },
  }),

  createExample: createRoute({
    method: "post",
    path: "/examples",
    operationId: "create_example",
    summary: "Add an example to a dataset",
    request: { body: jsonBody(ExampleOfDataset) },
    responses: { 200: jsonResponse(Example, "The example."), ...errors(400, 404, 409) },
  }),

  /** Adds all examples, or none. */
  createExamples: createRoute({
    method: "post",
    path: "/examples/bulk",
    operationId: "create_examples",
    summary: "Add several examples",
    request: { body: jsonBody(z.array(ExampleOfDataset).max(10_000)) },
    responses: {
      200: jsonResponse(z.array(Example), "The examples, in the order of the request."),
      ...errors(400, 404, 409),
    },
  }),

  updateExamples: createRoute({
    method: "patch",
    path: "/examples/bulk",
    operationId: "update_examples",
    summary: "Update several examples. If one update fails, none is applied.",
    request: { body: jsonBody(z.array(ExampleOfBulkUpdate).max(10_000)) },
    responses: { 200: jsonResponse(z.array(Example), "The updated examples."), ...errors(404) },
  }),

  readExample: createRoute({
    method: "get",
    path: "/examples/{example_id}",
    operationId: "read_example",
    summary: "Get an example",
    request: { params: exampleParams, query: z.object({ as_of: version, dataset: uuidOrHex.optional() }) },
    responses: { 200: jsonResponse(Example, "The example."), ...errors(404) },
  }),

  updateExample: createRoute({
    method: "patch",
    path: "/examples/{example_id}",
    operationId: "update_example",
    summary: "Update an example",
    request: { params: exampleParams, body: jsonBody(ExampleUpdate) },
    responses: { 200: jsonResponse(Example, "The updated example."), ...errors(404) },
  }),

  deleteExample: createRoute({
    method: "delete",
    path: "/examples/{example_id}",
    operationId: "delete_example",
    summary: "Delete an example. Experiment runs that used the example still contain its inputs.",
    request: { params: exampleParams },
    responses: { 200: deletedExamples, ...errors(404) },
  }),

  deleteExamples: createRoute({
    method: "delete",
    path: "/examples",
    operationId: "delete_examples",
    summary: "Delete several examples. If any ID is unknown, none is deleted.",
    request: { query: z.object({ example_ids: uuids }) },
    responses: { 200: deletedExamples, ...errors(404) },
  }),
};
