import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonResponse, optional, withDefault } from "../../platform/contract/fields.ts";
import { datasetParams } from "./datasets.ts";
import { errors, looseUuid } from "./fields.ts";

const tags = ["Web app"];

/** The baseline comes first. */
const session_ids = z.array(looseUuid).min(1).max(10);

const scoreRange = z
  .object({ session_id: looseUuid, key: z.string(), min: optional(z.number()), max: optional(z.number()) })
  .openapi({ description: "Bounds included." });

const change = z
  .object({ session_id: looseUuid, key: z.string(), direction: z.enum(["better", "worse", "changed"]) })
  .openapi({ description: "Against the baseline, in the direction that is better for the key." });

const order = z.object({
  by: z.enum(["score", "latency"]),
  key: optional(z.string()).openapi({ description: "Of the score." }),
  session_id: looseUuid,
  delta: withDefault(z.boolean(), false).openapi({ description: "By how far it is from the baseline." }),
  descending: withDefault(z.boolean(), true),
});

const ComparedRowsQuery = z
  .object({
    session_ids,
    offset: withDefault(z.int().min(0), 0),
    limit: withDefault(z.int().min(0).max(200), 100),
    scores: optional(z.array(scoreRange).max(20)),
    change: optional(change),
    failed: optional(z.array(looseUuid).max(10)).openapi({ description: "Any of these experiments failed on it." }),
    text: optional(z.string()).openapi({ description: "Words that a run of any of them, or the example, has." }),
    filters: optional(z.record(z.string(), z.array(z.string()))).openapi({ description: "By experiment." }),
    order: optional(order).openapi({ description: "The order of the dataset when it is missing." }),
    example_id: optional(looseUuid).openapi({ description: "Whose position is asked for." }),
  })
  .openapi("ComparedRowsQuery");
export type ComparedRowsQuery = z.output<typeof ComparedRowsQuery>;

/** What an experiment made of an example; of several runs the means, and the texts of the first. */
const ComparedCell = z.object({
  runs: z.int(),
  errors: z.int(),
  error: z.string().nullable().openapi({ description: "Its beginning." }),
  outputs_preview: z.string().nullable(),
  latency_s: z.number(),
  scores: z.record(z.string(), z.number()),
  labels: z.record(z.string(), z.string()).openapi({ description: "Of keys whose value is a text." }),
});
export type ComparedCell = z.output<typeof ComparedCell>;

/** An example in a comparison: enough for two lines in a table. */
export const ComparedRow = z
  .object({
    example_id: z.string(),
    number: z.int().openapi({ description: "1, 2, 3 ... in the dataset." }),
    inputs_preview: z.string(),
    expected_preview: z.string().nullable(),
    cells: z.array(ComparedCell.nullable()).openapi({ description: "In the order of `session_ids`." }),
  })
  .openapi("ComparedRow");
export type ComparedRow = z.output<typeof ComparedRow>;

const ComparedRows = z
  .object({
    total: z.int().openapi({ description: "Examples that meet the filters." }),
    position: z.int().nullable().openapi({ description: "Of `example_id` among them, from 0." }),
    rows: z.array(ComparedRow),
  })
  .openapi("ComparedRows");
export type ComparedRows = z.output<typeof ComparedRows>;

const readComparedRows = createRoute({
  method: "post",
  path: "/app/api/datasets/{dataset_id}/compared-rows",
  operationId: "readComparedRows",
  summary: "A page of examples side by side, filtered and sorted by what is compared",
  tags,
  request: { params: datasetParams, body: jsonBody(ComparedRowsQuery) },
  responses: { 200: jsonResponse(ComparedRows, "The page."), ...errors(400, 404) },
});

const DistributionsQuery = z.object({ session_ids }).openapi("DistributionsQuery");
export type DistributionsQuery = z.output<typeof DistributionsQuery>;

/** How often what occurs: ten ranges of equal width from `low` to `high`, the same for all experiments. */
const Distribution = z
  .object({
    key: z.string(),
    low: z.number(),
    high: z.number(),
    is_binary: z.boolean().openapi({ description: "Nothing but 0 and 1." }),
    counts: z.array(z.array(z.int())).openapi({ description: "In the order of `session_ids`." }),
  })
  .openapi("Distribution");
export type Distribution = z.output<typeof Distribution>;

const readDistributions = createRoute({
  method: "post",
  path: "/app/api/datasets/{dataset_id}/distributions",
  operationId: "readDistributions",
  summary: "How the scores of experiments are distributed",
  tags,
  request: { params: datasetParams, body: jsonBody(DistributionsQuery) },
  responses: { 200: jsonResponse(z.array(Distribution), "By key."), ...errors(404) },
});

/** What the compare page needs. The comments repeat each route's method and path. */
export const comparisonPageRoutes = {
  readComparedRows, // POST /app/api/datasets/{dataset_id}/compared-rows
  readDistributions, // POST /app/api/datasets/{dataset_id}/distributions
} as const;
