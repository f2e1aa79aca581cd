import { experimentRoutes } from "../contract/routes.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import type { Routes } from "./route.ts";

export function serveFeedback(v1: Routes, { feedback, feedbackConfigs }: ExperimentsService): void {
  const routes = experimentRoutes.feedback;

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
