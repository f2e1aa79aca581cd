import type { Context } from "hono";
import { type BaseUrlOptions, baseUrlOf } from "../../platform/http/base-url.ts";
import type { Env } from "../../platform/http/route.ts";
import { feedbackRoutes } from "../contract/feedback/feedback.ts";
import { feedbackConfigRoutes } from "../contract/feedback/feedback-configs.ts";
import { feedbackTokenRoutes } from "../contract/feedback/feedback-tokens.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import type { Routes } from "./route.ts";

export function serveFeedback(
  v1: Routes,
  { feedback, feedbackConfigs, feedbackTokens }: ExperimentsService,
  base_url: BaseUrlOptions,
): void {
  // Must be registered first, because the route `/feedback/{feedback_id}` below also matches `/feedback/tokens`.
  const { createFeedbackTokens, listFeedbackTokens, sendFeedbackByLink, sendFeedback } = feedbackTokenRoutes;
  const api = (context: Context<Env>) => `${baseUrlOf(context, base_url)}/api/v1`;
  v1.json(createFeedbackTokens, ({ caller, body, context }) => feedbackTokens.create(caller, body, api(context)));
  v1.json(listFeedbackTokens, ({ caller, query, context }) => feedbackTokens.list(caller, query, api(context)));
  v1.json(sendFeedbackByLink, ({ params, query }) => feedbackTokens.send(params.token, query));
  v1.json(sendFeedback, ({ params, body }) => feedbackTokens.send(params.token, body));

  const routes = { ...feedbackRoutes, ...feedbackConfigRoutes };

  v1.json(routes.createFeedback, ({ caller, body }) => feedback.create(caller, body));
  v1.json(routes.listFeedback, ({ caller, query }) => feedback.list(caller, query));
  v1.json(routes.readFeedback, ({ caller, params }) => feedback.read(caller, params.feedback_id));
  v1.json(routes.updateFeedback, ({ caller, params, body }) => feedback.update(caller, params.feedback_id, body));
  v1.deletion(routes.deleteFeedback, "Feedback", ({ caller, params }) => feedback.delete(caller, params.feedback_id));
  v1.json(routes.listFeedbackConfigs, ({ caller, query }) => feedbackConfigs.list(caller, query));
  v1.json(routes.createFeedbackConfig, ({ caller, body }) => feedbackConfigs.create(caller, body));
  v1.json(routes.updateFeedbackConfig, ({ caller, body }) => feedbackConfigs.update(caller, body));

  v1.serve(routes.deleteFeedbackConfig, async ({ caller, query, context }) => {
    await feedbackConfigs.delete(caller, query.feedback_key);
    return context.body(null, 204);
  });
}
