import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonResponse, nullable, optional } from "../../../platform/contract/fields.ts";
import { timeText, uuidOrHex } from "../fields.ts";
import { deletedResponse, errors } from "../responses.ts";

const price = z.union([z.number(), z.string().max(40)], {
  error: "must be a number, or a decimal number as a string",
});
const details = z.record(z.string().max(100), price).refine((prices) => Object.keys(prices).length <= 50, {
  message: "must contain at most 50 prices",
});

const name = z.string().min(1).max(200);

const ModelPriceInput = z
  .object({
    name,
    match_pattern: z
      .string()
      .min(1)
      .describe(
        "An RE2 regular expression that must match the model name or a part of it. Use `^` and `$` to match the whole name.",
      ),
    match_path: optional(z.array(name).min(1).max(20)).describe(
      "Fields of `extra.invocation_params` that contain the model name, for runs without `metadata.ls_model_name`.",
    ),
    prompt_cost: price.describe("US dollars per prompt token."),
    completion_cost: price.describe("US dollars per completion token."),
    prompt_cost_details: optional(details).describe("US dollars per token, keyed by token type such as `cache_read`."),
    completion_cost_details: optional(details),
    provider: optional(z.string().max(200)).describe(
      "The price applies only to runs with this `metadata.ls_provider`.",
    ),
    start_time: optional(z.string().max(40)).describe(
      "The price applies only to runs that started at or after this time.",
    ),
  })
  .openapi("ModelPriceMapCreateSchema");
export type ModelPriceInput = z.output<typeof ModelPriceInput>;

const ModelPrice = z
  .object({
    id: z.string(),
    name: z.string(),
    match_pattern: z.string(),
    match_path: z.array(z.string()),
    prompt_cost: price,
    completion_cost: price,
    prompt_cost_details: nullable(details),
    completion_cost_details: nullable(details),
    provider: z.string().nullable(),
    start_time: nullable(timeText),
  })
  .openapi("ModelPriceMapSchema");
export type ModelPrice = z.output<typeof ModelPrice>;

const params = z.object({ price_id: uuidOrHex });

/** The prices of a workspace. They override the built-in prices. If several apply, the one with the latest `start_time` is used. */
export const priceRoutes = {
  listPrices: createRoute({
    method: "get",
    path: "/model-price-map",
    operationId: "read_model_price_map",
    summary: "List the prices of the workspace",
    responses: { 200: jsonResponse(z.array(ModelPrice), "The prices."), ...errors() },
  }),

  createPrice: createRoute({
    method: "post",
    path: "/model-price-map",
    operationId: "create_new_model_price",
    summary: "Create a price. The costs of runs that are already stored do not change until they are recomputed.",
    request: { body: jsonBody(ModelPriceInput) },
    responses: { 200: jsonResponse(ModelPrice, "The price."), ...errors(400, 409) },
  }),

  updatePrice: createRoute({
    method: "put",
    path: "/model-price-map/{price_id}",
    operationId: "update_model_price",
    summary: "Replace a price",
    request: { params, body: jsonBody(ModelPriceInput) },
    responses: { 200: jsonResponse(ModelPrice, "The price."), ...errors(404, 409) },
  }),

  deletePrice: createRoute({
    method: "delete",
    path: "/model-price-map/{price_id}",
    operationId: "delete_model_price",
    summary: "Delete a price",
    request: { params },
    responses: { 200: deletedResponse("The price was deleted."), ...errors(404) },
  }),
};

const Reprice = z
  .object({ session_id: uuidOrHex, after: optional(z.string()).describe("`next` of the previous response.") })
  .openapi("Reprice");

const Repriced = z.object({
  traces: z.int().describe("Number of traces that this request processed."),
  runs: z.int().describe("Number of runs whose costs this request changed."),
  next: z
    .string()
    .nullable()
    .describe("The `after` value for the next request; null when all traces have been processed."),
});

export const pricePageRoutes = {
  reprice: createRoute({
    method: "post",
    path: "/app/api/reprice",
    operationId: "repriceSession",
    summary:
      "Use the current prices to recompute the costs of a project's runs. Costs that clients sent do not change. Each request processes traces for about two seconds; repeat the request with `after` until all traces are processed.",
    tags: ["Web app"],
    request: { body: jsonBody(Reprice) },
    responses: { 200: jsonResponse(Repriced, "The progress."), ...errors(400, 404) },
  }),
};
