import { createRoute, z } from "@hono/zod-openapi";
import {
  jsonBody,
  jsonObject,
  jsonResponse,
  nullable,
  optional,
  queryBoolean,
} from "../../../platform/contract/fields.ts";
import { nullableTime, paging, texts, time, timeText, traceTime, unsupported, uuidOrHex, uuids } from "../fields.ts";
import { deletedResponse, errors } from "../responses.ts";

export const feedbackCategory = z.object({ value: z.number(), label: optional(z.string().min(1)) });

/** The meaning of the scores of a key: a range, named values, or free text. */
export const FeedbackConfig = z
  .object({
    type: z.enum(["continuous", "categorical", "freeform"]),
    min: optional(z.number()),
    max: optional(z.number()),
    categories: optional(z.array(feedbackCategory)),
    // Not stored: a config with the default is the same as one without it.
    allows_multiple_categories: unsupported((value) => value === false, "is not supported")
      .transform(() => undefined)
      .optional(),
  })
  .openapi("FeedbackConfig");
export type FeedbackConfig = z.output<typeof FeedbackConfig>;

/** The source of feedback. LangSmith allows `app`, `api`, `model`, `auto_eval`; this API accepts any text. */
const feedbackSource = z.object({ type: z.string(), metadata: optional(jsonObject) }).catchall(z.unknown());

/** `true` counts as 1 and `false` as 0, as in LangSmith. */
const score = z.union([z.number(), z.boolean()], { error: "must be a number or a boolean" }).transform(Number);
const value = z.union([z.number(), z.boolean(), z.string(), jsonObject], {
  error: "must be a number, a boolean, a string or an object",
});
const correction = z.union([jsonObject, z.string()], { error: "must be an object or a string" });

export const feedbackValues = {
  score: optional(score),
  value: optional(value),
  comment: optional(z.string()),
  correction: optional(correction),
  feedback_config: optional(FeedbackConfig),
};

/** A score or a comment. `created_at` and `modified_at` default to the current time. */
export const FeedbackInput = z
  .object({
    ...feedbackValues,
    id: optional(uuidOrHex),
    key: z.string().min(1).max(180),
    created_at: optional(time),
    modified_at: optional(time),
    feedback_source: optional(feedbackSource),
    feedback_group_id: optional(uuidOrHex),
    comparative_experiment_id: optional(uuidOrHex),
    extra: optional(jsonObject),
    error: optional(z.boolean()),
  })
  .openapi("FeedbackCreateCore");
export type FeedbackInput = z.output<typeof FeedbackInput>;

/** Renames `feedbackConfig`, which the official JavaScript client sends, to `feedback_config`. */
const withSnakeCaseConfig = (body: unknown): unknown => {
  const given = body as { feedbackConfig?: unknown; feedback_config?: unknown } | null;
  if (typeof given !== "object" || given?.feedbackConfig === undefined) return body;
  return { ...given, feedback_config: given.feedback_config ?? given.feedbackConfig };
};

/** Feedback on a run, or on an experiment when only `session_id` is set. */
export const FeedbackCreate = z
  .preprocess(
    withSnakeCaseConfig,
    FeedbackInput.extend({
      run_id: optional(uuidOrHex),
      session_id: optional(uuidOrHex),
      trace_id: optional(uuidOrHex),
      start_time: optional(traceTime),
      extend_trace_retention: optional(z.boolean()).describe(
        "Whether to exempt the trace from expiration. Default: true.",
      ),
    }),
  )
  .openapi("FeedbackCreate");
export type FeedbackCreate = z.output<typeof FeedbackCreate>;

const FeedbackUpdate = z
  .preprocess(
    withSnakeCaseConfig,
    z.object({
      score: nullable(score).optional(),
      value: nullable(value).optional(),
      comment: nullable(z.string()).optional(),
      correction: nullable(correction).optional(),
      feedback_config: optional(FeedbackConfig),
    }),
  )
  .openapi("FeedbackUpdate");
export type FeedbackUpdate = z.output<typeof FeedbackUpdate>;

export const Feedback = z
  .object({
    id: z.string(),
    key: z.string(),
    score: z.number().nullable(),
    value: z.unknown(),
    comment: z.string().nullable(),
    correction: z.unknown(),
    run_id: z.string().nullable(),
    session_id: z.string().nullable(),
    trace_id: z.string().nullable(),
    start_time: nullableTime,
    is_root: z.boolean(),
    feedback_group_id: z.string().nullable(),
    comparative_experiment_id: z.string().nullable(),
    feedback_source: z.object({ type: z.string().nullable() }).catchall(z.unknown()).nullable(),
    feedback_thread_id: z.null(),
    extra: jsonObject.nullable(),
    created_at: timeText,
    modified_at: timeText,
  })
  .openapi("Feedback");
export type Feedback = z.output<typeof Feedback>;

const feedbackParams = z.object({ feedback_id: uuidOrHex });

const FeedbackQuery = z.object({
  run: uuids.optional(),
  session: uuids.optional(),
  key: texts.optional(),
  source: texts.optional(),
  level: z.enum(["run", "session"]).optional(),
  has_comment: queryBoolean.optional(),
  has_score: queryBoolean.optional(),
  min_created_at: time.optional(),
  max_created_at: time.optional(),
  comparative_experiment_id: uuidOrHex.optional(),
  ...paging,
});
export type FeedbackQuery = z.output<typeof FeedbackQuery>;

export const feedbackRoutes = {
  createFeedback: createRoute({
    method: "post",
    path: "/feedback",
    operationId: "create_feedback",
    summary: "Create feedback on a run or an experiment",
    request: { body: jsonBody(FeedbackCreate) },
    responses: { 200: jsonResponse(Feedback, "The feedback."), ...errors(404, 409) },
  }),

  listFeedback: createRoute({
    method: "get",
    path: "/feedback",
    operationId: "list_feedback",
    summary: "List feedback, newest first",
    request: { query: FeedbackQuery },
    responses: { 200: jsonResponse(z.array(Feedback), "A page of feedback."), ...errors() },
  }),

  readFeedback: createRoute({
    method: "get",
    path: "/feedback/{feedback_id}",
    operationId: "read_feedback",
    summary: "Get feedback",
    request: { params: feedbackParams },
    responses: { 200: jsonResponse(Feedback, "The feedback."), ...errors(404) },
  }),

  updateFeedback: createRoute({
    method: "patch",
    path: "/feedback/{feedback_id}",
    operationId: "update_feedback",
    summary: "Update feedback. Omitted fields are not changed.",
    request: { params: feedbackParams, body: jsonBody(FeedbackUpdate) },
    responses: { 200: jsonResponse(Feedback, "The updated feedback."), ...errors(404) },
  }),

  deleteFeedback: createRoute({
    method: "delete",
    path: "/feedback/{feedback_id}",
    operationId: "delete_feedback",
    summary: "Delete feedback",
    request: { params: feedbackParams },
    responses: { 200: deletedResponse("The feedback was deleted."), ...errors(404) },
  }),
};
