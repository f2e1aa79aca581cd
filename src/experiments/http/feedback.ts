import { type App, jsonText } from "../../platform/http/route.ts";
import { experimentRoutes } from "../contract/routes.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import { gone } from "./gone.ts";
import { serveAt } from "./route.ts";

export function serveFeedback(
  app: App,
  at: readonly string[],
  { feedback, feedbackConfigs }: ExperimentsService,
): void {
  const routes = experimentRoutes.feedback;

  serveAt(app, at, routes.createFeedback, async ({ caller, body }) =>
    jsonText((await feedback.create(caller, body)).json),
  );

  serveAt(app, at, routes.listFeedback, async ({ caller, query }) =>
    jsonText((await feedback.list(caller, query)).json),
  );

  serveAt(app, at, routes.readFeedback, async ({ caller, params }) =>
    jsonText((await feedback.read(caller, params.feedback_id)).json),
  );

  serveAt(app, at, routes.updateFeedback, async ({ caller, params, body }) =>
    jsonText((await feedback.update(caller, params.feedback_id, body)).json),
  );

  serveAt(app, at, routes.deleteFeedback, async ({ caller, params, context }) => {
    await feedback.delete(caller, params.feedback_id);
    return gone(context, "Feedback");
  });

  serveAt(app, at, routes.listFeedbackConfigs, async ({ caller, query }) =>
    jsonText((await feedbackConfigs.list(caller, query)).json),
  );

  serveAt(app, at, routes.createFeedbackConfig, async ({ caller, body }) =>
    jsonText((await feedbackConfigs.create(caller, body)).json),
  );

  serveAt(app, at, routes.updateFeedbackConfig, async ({ caller, body }) =>
    jsonText((await feedbackConfigs.update(caller, body)).json),
  );

  serveAt(app, at, routes.deleteFeedbackConfig, async ({ caller, query, context }) => {
    await feedbackConfigs.delete(caller, query.feedback_key);
    return context.body(null, 204);
  });
}
