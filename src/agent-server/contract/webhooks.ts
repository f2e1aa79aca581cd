import { z } from "@hono/zod-openapi";
import { errorResponses, jsonResponse, nullable, queryInt, timestamp, uuid } from "../../platform/contract/fields.ts";
import { routeGroup } from "../../platform/contract/operation.ts";

const DeliveryStatus = z.enum(["pending", "delivered", "failed"]).openapi("WebhookDeliveryStatus");

export const WebhookDelivery = z
  .object({
    delivery_id: uuid.openapi({
      description:
        "The `webhook-id` header of the requests. For the webhook of a run, it is the ID of the run; push notifications of A2A tasks have IDs of their own.",
    }),
    run_id: uuid,
    url: z.string(),
    status: DeliveryStatus,
    attempts: z
      .int()
      .openapi({ description: "Number of requests sent. Redelivering a failed webhook resets this number." }),
    next_attempt_at: nullable(timestamp).openapi({
      description: "Earliest time of the next request, or null if the status is `delivered` or `failed`.",
    }),
    response_status: nullable(z.int()).openapi({
      description: "HTTP status of the response to the last request, or null if there was no response.",
    }),
    error: nullable(z.string()).openapi({ description: "Why the last request failed." }),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .openapi("WebhookDelivery");
export type WebhookDelivery = z.output<typeof WebhookDelivery>;

const WebhookDeliveryQuery = z.object({
  run_id: uuid.optional(),
  status: DeliveryStatus.optional(),
  limit: queryInt(1, 1000).default(10).openapi({ default: 10 }),
  offset: queryInt(0, 1_000_000_000).default(0).openapi({ default: 0 }),
});
export type WebhookDeliveryQuery = z.output<typeof WebhookDeliveryQuery>;

export const webhookRoutes = routeGroup("Webhooks", {
  listWebhookDeliveries: {
    method: "get",
    path: "/webhooks/deliveries",
    summary: "List webhook deliveries",
    description: "Returns the newest deliveries first.",
    request: { query: WebhookDeliveryQuery },
    responses: { 200: jsonResponse(z.array(WebhookDelivery), "A page of deliveries."), ...errorResponses(422) },
  },

  /** 409: the webhook was delivered, so its payload is deleted. */
  redeliverWebhook: {
    method: "post",
    path: "/webhooks/deliveries/{run_id}/redeliver",
    summary: "Send the pending or failed webhook of a run now",
    description:
      "Also sends the pending and failed push notifications of the run. Restarts the 24-hour retry period. For a failed delivery, also resets the number of attempts to 0.",
    request: { params: z.object({ run_id: uuid }) },
    responses: { 200: jsonResponse(WebhookDelivery, "The delivery."), ...errorResponses(404, 409, 422) },
  },
});
