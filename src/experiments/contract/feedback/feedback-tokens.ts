import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonObject, jsonResponse, optional } from "../../../platform/contract/fields.ts";
import { paging, time, timeText, uuidOrHex } from "../fields.ts";
import { errors } from "../responses.ts";
import { FeedbackConfig, feedbackValues } from "./feedback.ts";

const amount = z.number().min(0).max(100_000).default(0);

const FeedbackTokenCreate = z
  .object({
    run_id: uuidOrHex.describe(
      "The run does not need to exist yet: feedback is attached to it when the run is created.",
    ),
    feedback_key: z.string().min(1).max(180),
    feedback_config: optional(FeedbackConfig),
    id: optional(uuidOrHex).describe(
      "The ID of the feedback. If set, sending feedback again with this token replaces the previous feedback.",
    ),
    expires_in: optional(z.object({ days: amount, hours: amount, minutes: amount })).describe("Default: 3 hours."),
    expires_at: optional(time),
  })
  .openapi("FeedbackIngestTokenCreateSchema");
export type FeedbackTokenCreate = z.output<typeof FeedbackTokenCreate>;

const FeedbackToken = z
  .object({
    id: z.string(),
    url: z.string().describe("URL that accepts feedback without an API key."),
    expires_at: timeText,
  })
  .openapi("FeedbackIngestTokenSchema");
export type FeedbackToken = z.output<typeof FeedbackToken>;

const { score, value, comment, correction } = feedbackValues;

const TokenFeedback = z
  .object({ score, value, comment, correction, metadata: optional(jsonObject) })
  .openapi("FeedbackIngestSchema");
export type TokenFeedback = z.output<typeof TokenFeedback>;

/** A score in a query string: a number, `true` (1) or `false` (0). */
const scoreText = z.string().transform((text, context) => {
  if (text === "true" || text === "false") return Number(text === "true");
  const number = Number(text);
  if (text.trim() !== "" && Number.isFinite(number)) return number;
  context.issues.push({ code: "custom", input: text, message: "must be a number, true or false" });
  return z.NEVER;
});

const params = z.object({ token: uuidOrHex });
const stored = jsonResponse(z.object({ message: z.string() }), "The feedback was stored.");

export const feedbackTokenRoutes = {
  createFeedbackTokens: createRoute({
    method: "post",
    path: "/feedback/tokens",
    operationId: "create_feedback_ingest_token",
    summary:
      "Create tokens that let clients without an API key send feedback on a run. If the request body is a list, the response is also a list.",
    request: { body: jsonBody(z.union([FeedbackTokenCreate, z.array(FeedbackTokenCreate).min(1).max(100)])) },
    responses: { 200: jsonResponse(z.union([FeedbackToken, z.array(FeedbackToken)]), "The tokens."), ...errors() },
  }),

  listFeedbackTokens: createRoute({
    method: "get",
    path: "/feedback/tokens",
    operationId: "list_feedback_ingest_tokens",
    summary: "List the unexpired tokens of a run, newest first",
    request: { query: z.object({ run_id: uuidOrHex, ...paging }) },
    responses: { 200: jsonResponse(z.array(FeedbackToken), "A page of tokens."), ...errors() },
  }),

  sendFeedbackByLink: createRoute({
    method: "get",
    path: "/feedback/tokens/{token}",
    operationId: "create_feedback_with_token_get",
    summary:
      "Create feedback by opening a link. The link contains a token in its path and the feedback in its query parameters",
    security: [],
    request: {
      params,
      query: z.object({
        score: scoreText.optional(),
        value: z.string().optional(),
        comment: z.string().optional(),
        correction: z.string().optional(),
      }),
    },
    responses: { 200: stored, ...errors(404) },
  }),

  sendFeedback: createRoute({
    method: "post",
    path: "/feedback/tokens/{token}",
    operationId: "create_feedback_with_token_post",
    summary: "Create feedback with a token",
    security: [],
    request: { params, body: jsonBody(TokenFeedback) },
    responses: { 200: stored, ...errors(404) },
  }),
};
