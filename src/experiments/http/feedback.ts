import type { App } from "../../platform/http/route.ts";
import { experimentRoutes } from "../contract/routes.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import { deletedResponse, serveAt, serveJson } from "./route.ts";

export function serveFeedback(
  app: App,
  prefixes: readonly string[],
  { feedback, feedbackConfigs }: ExperimentsService,
): void {
  const routes = experimentRoutes.feedback;

  serveJson(app, prefixes, routes.createFeedback, ({ caller, body }) => feedback.create(caller, body));

  serveJson(app, prefixes, routes.listFeedback, ({ caller, query }) => feedback.list(caller, query));

  serveJson(app, prefixes, routes.readFeedback, ({ caller, params }) => feedback.read(caller, params.feedback_id));

  serveJson(app, prefixes, routes.updateFeedback, ({ caller, params, body }) =>
    feedback.update(caller, params.feedback_id, body),
  );

  serveAt(app, prefixes, routes.deleteFeedback, async ({ caller, params, context }) => {
    await feedback.delete(caller, params.feedback_id);
    return deletedResponse(context, "Feedback");
  });

  serveJson(app, prefixes, routes.listFeedbackConfigs, ({ caller, query }) => feedbackConfigs.list(caller, query));

  serveJson(app, prefixes, routes.createFeedbackConfig, ({ caller, body }) => feedbackConfigs.create(caller, body));

  serveJson(app, prefixes, routes.updateFeedbackConfig, ({ caller, body }) => feedbackConfigs.update(caller, body));

  serveAt(app, prefixes, routes.deleteFeedbackConfig, async ({ caller, query, context }) => {
    await feedbackConfigs.delete(caller, query.feedback_key);
    return context.body(null, 204);
  });
}
