import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonResponse, nullable, optional, queryBoolean } from "../../../platform/contract/fields.ts";
import { paging, texts, timeText } from "../fields.ts";
import { errors } from "../responses.ts";
import { FeedbackConfig, feedbackCategory } from "./feedback.ts";

const KeyConfig = z
  .object({
    feedback_key: z.string(),
    feedback_config: z.object({
      type: z.enum(["continuous", "categorical", "freeform"]),
      min: z.number().nullable(),
      max: z.number().nullable(),
      categories: z.array(z.object({ value: z.number(), label: z.string().nullable() })).nullable(),
    }),
    is_lower_score_better: z.boolean().nullable(),
    tenant_id: z.string(),
    modified_at: timeText,
  })
  .openapi("FeedbackKeyConfig");
export type KeyConfig = z.output<typeof KeyConfig>;

const KeyConfigQuery = z.object({
  key: texts.optional(),
  name_contains: z.string().optional(),
  is_enforced: queryBoolean.optional().describe("If true, returns no config: enforced configs are not supported."),
  sort_by_desc: queryBoolean.default(true),
  ...paging,
});
export type KeyConfigQuery = z.output<typeof KeyConfigQuery>;

const KeyConfigCreate = z.object({
  feedback_key: z.string().min(1).max(180),
  feedback_config: FeedbackConfig,
  is_lower_score_better: optional(z.boolean()),
  is_enforced: optional(
    z.boolean().refine((is_enforced) => !is_enforced, "must be false or omitted: enforced configs are not supported"),
  ),
});
export type KeyConfigCreate = z.output<typeof KeyConfigCreate>;

const KeyConfigUpdate = z.object({
  id: optional(
    z
      .string()
      .refine(() => false, "must be omitted: a feedback key has only one config, so `feedback_key` is sufficient"),
  ),
  feedback_key: z.string().min(1).max(180),
  feedback_config: optional(FeedbackConfig),
  is_lower_score_better: nullable(z.boolean()).optional(),
  add_categories: optional(z.array(feedbackCategory).max(1000)),
  remove_categories: optional(z.array(z.number()).max(1000)).describe("The `value` of each category to remove."),
});
export type KeyConfigUpdate = z.output<typeof KeyConfigUpdate>;

export const feedbackConfigRoutes = {
  listFeedbackConfigs: createRoute({
    method: "get",
    path: "/feedback-configs",
    operationId: "list_feedback_configs",
    summary: "List feedback configs",
    request: { query: KeyConfigQuery },
    responses: { 200: jsonResponse(z.array(KeyConfig), "A page of feedback configs."), ...errors() },
  }),

  createFeedbackConfig: createRoute({
    method: "post",
    path: "/feedback-configs",
    operationId: "create_feedback_config",
    summary: "Create a feedback config. Returns 409 if the key already has a different config.",
    request: { body: jsonBody(KeyConfigCreate) },
    responses: { 200: jsonResponse(KeyConfig, "The feedback config."), ...errors(409) },
  }),

  updateFeedbackConfig: createRoute({
    method: "patch",
    path: "/feedback-configs",
    operationId: "update_feedback_config",
    summary: "Update a feedback config",
    request: { body: jsonBody(KeyConfigUpdate) },
    responses: { 200: jsonResponse(KeyConfig, "The updated feedback config."), ...errors(404) },
  }),

  deleteFeedbackConfig: createRoute({
    method: "delete",
    path: "/feedback-configs",
    operationId: "delete_feedback_config",
    summary: "Delete a feedback config. Existing feedback with this key is kept.",
    request: { query: z.object({ feedback_key: z.string() }) },
    responses: { 204: { description: "The feedback config was deleted." }, ...errors(404) },
  }),
};
