import { createRoute, z } from "@hono/zod-openapi";
import { jsonResponse } from "../../../platform/contract/fields.ts";
import { errors } from "../responses.ts";
import { AnnotationQueue, QueueQuery } from "./queues.ts";

const QueueOverview = AnnotationQueue.extend({
  items: z
    .object({ needs_my_review: z.int(), needs_others_review: z.int(), archived: z.int() })
    .describe("Number of items in each section of the queue. The section of an item can differ between callers."),
}).openapi("AnnotationQueueOverview");
export type QueueOverview = z.output<typeof QueueOverview>;

/** The route of the web app's queue pages. It counts the items of all queues; the public API counts those of one queue per request. */
export const queuePageRoutes = {
  listQueueOverviews: createRoute({
    method: "get",
    path: "/app/api/annotation-queues",
    operationId: "listQueueOverviews",
    summary: "List annotation queues with item counts",
    tags: ["Web app"],
    request: { query: QueueQuery },
    responses: { 200: jsonResponse(z.array(QueueOverview), "A page of queues."), ...errors() },
  }),
} as const;
