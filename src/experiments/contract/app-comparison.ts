import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonResponse, optional, withDefault } from "../../platform/contract/fields.ts";
import { datasetParams } from "./datasets/datasets.ts";
import { experimentFilters, uuidOrHex } from "./fields.ts";
import { errors } from "./responses.ts";

const tags = ["Web app"];

/** The first experiment is the baseline. */
const session_ids = z.array(uuidOrHex).min(1).max(10);

const scoreRange = z
  .object({ session_id: uuidOrHex, key: z.string(), min: optional(z.number()), max: optional(z.number()) })
  .describe("Returns only examples whose score is in this range. Both bounds are inclusive.");

const change = z
  .object({ session_id: uuidOrHex, key: z.string(), direction: z.enum(["better", "worse", "changed"]) })
  .describe(
    "Returns only examples whose score is better or worse than in the baseline, depending on `direction`. With `changed`, returns both. For keys where lower is better, a lower score is `better`.",
  );

const order = z.object({
  by: z.enum(["score", "latency"]),
  key: optional(z.string()).describe("The feedback key to sort by. Used when `by` is `score`."),
  session_id: uuidOrHex,
  delta: withDefault(z.boolean(), false).describe("Whether to sort by the difference from the baseline."),
  descending: withDefault(z.boolean(), true),
});

const ComparedRowsQuery = z
  .object({
    session_ids,
    offset: withDefault(z.int().min(0), 0),
    limit: withDefault(z.int().min(0).max(200), 100),
    scores: optional(z.array(scoreRange).max(20)),
    change: optional(change),
    failed: optional(z.array(uuidOrHex).max(10)).describe(
      "Returns only examples with a failed run in at least one of these experiments.",
    ),
    text: optional(z.string()).describe(
      "Words to search for. An example matches if all words occur in the example itself, or if all words occur in one of its runs.",
    ),
    filters: experimentFilters.describe("Filter expressions, keyed by experiment ID."),
    preview: optional(z.object({ inputs: optional(z.string()), outputs: optional(z.string()) })).describe(
      "Top-level keys whose values are previewed; `$` previews the complete payload as JSON. By default, the preview shows the first of these that exists: the last message of the user (inputs) or of the model (outputs); the value of the payload's only key, if the value is text; the text under a common key such as `question` or `answer`; the payload as JSON.",
    ),
    order: optional(order).describe("Sort order. Default: the examples' order in the dataset."),
    example_id: optional(uuidOrHex).describe("ID of an example. Its position in the result is returned in `position`."),
  })
  .openapi("ComparedRowsQuery");
export type ComparedRowsQuery = z.output<typeof ComparedRowsQuery>;

/** The runs of one experiment on one example. Scores and latency are means over the runs; the outputs are from the first run. */
const ComparedCell = z.object({
  runs: z.int(),
  errors: z.int(),
  error: z.string().nullable().describe("The beginning of the first error message."),
  outputs_preview: z.string().nullable(),
  latency_s: z.number().nullable().describe("Mean latency of the completed runs; null if no run has completed."),
  is_earlier_version: z
    .boolean()
    .describe(
      "Whether at least one of the runs used an earlier version of the example than the version shown in the row.",
    ),
  scores: z.record(z.string(), z.number()),
  labels: z.record(z.string(), z.string()).describe("Text values of feedback, by feedback key."),
});
export type ComparedCell = z.output<typeof ComparedCell>;

export const ComparedRow = z
  .object({
    example_id: z.string(),
    number: z
      .int()
      .describe("Position of the example in the dataset, starting at 1. Deleted examples are counted, too."),
    inputs_preview: z.string(),
    expected_preview: z.string().nullable(),
    cells: z.array(ComparedCell.nullable()).describe("One cell per experiment, in the order of `session_ids`."),
  })
  .openapi("ComparedRow");
export type ComparedRow = z.output<typeof ComparedRow>;

const ComparedRows = z
  .object({
    total: z.int().describe("The number of examples that match the filters."),
    position: z.int().nullable().describe("Position of `example_id` among the matching examples, starting at 0."),
    rows: z.array(ComparedRow),
  })
  .openapi("ComparedRows");
export type ComparedRows = z.output<typeof ComparedRows>;

const DistributionsQuery = z.object({ session_ids }).openapi("DistributionsQuery");
export type DistributionsQuery = z.output<typeof DistributionsQuery>;

/** A histogram with ten bins of equal width from `low` to `high`. All experiments have the same bins. */
const Distribution = z
  .object({
    key: z.string(),
    low: z.number(),
    high: z.number(),
    is_binary: z.boolean().describe("Whether every score is either 0 or 1."),
    counts: z
      .array(z.array(z.int()))
      .describe(
        "Number of scores in each of ten equal bins from `low` to `high`: one list per experiment, in the order of `session_ids`.",
      ),
  })
  .openapi("Distribution");
export type Distribution = z.output<typeof Distribution>;

/** The routes of the compare page in the web app. */
export const comparisonPageRoutes = {
  readComparedRows: createRoute({
    method: "post",
    path: "/app/api/datasets/{dataset_id}/compared-rows",
    operationId: "readComparedRows",
    summary: "List the examples of a comparison, with filters and sorting",
    tags,
    request: { params: datasetParams, body: jsonBody(ComparedRowsQuery) },
    responses: { 200: jsonResponse(ComparedRows, "A page of examples."), ...errors(400, 404) },
  }),

  readDistributions: createRoute({
    method: "post",
    path: "/app/api/datasets/{dataset_id}/distributions",
    operationId: "readDistributions",
    summary: "Get the score distributions of experiments",
    tags,
    request: { params: datasetParams, body: jsonBody(DistributionsQuery) },
    responses: { 200: jsonResponse(z.array(Distribution), "One distribution per feedback key."), ...errors(404) },
  }),
};
