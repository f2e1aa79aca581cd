import { type App, serve } from "../../platform/http/route.ts";
import { webhookRoutes } from "../contract/webhooks.ts";
import type { WebhookDeliveries } from "../webhooks/webhook-deliveries.ts";

export function serveWebhooks(app: App, webhooks: WebhookDeliveries): void {
  serve(app, webhookRoutes.listWebhookDeliveries, async ({ caller, query, context }) =>
    context.json(await webhooks.list(caller, query)),
  );

  serve(app, webhookRoutes.redeliverWebhook, async ({ caller, params, context }) =>
    context.json(await webhooks.redeliver(caller, params.run_id)),
  );
}
