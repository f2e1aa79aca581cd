import type { BaseUrlOptions } from "../../platform/http/base-url.ts";
import { queueItemRoutes } from "../contract/annotation-queues/items.ts";
import { annotationQueueRoutes } from "../contract/annotation-queues/queues.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import { apiUrlOf, type Routes } from "./route.ts";

/** @param platform serves routes below `/platform`, including for clients whose base URL does not contain `/api/v1` */
export function serveAnnotationQueues(
  v1: Routes,
  platform: Routes,
  { annotationQueues: queues, queueItems: items }: ExperimentsService,
  base_url: BaseUrlOptions,
): void {
  const routes = annotationQueueRoutes;

  v1.json(routes.listQueues, ({ caller, query }) => queues.list(caller, query));
  v1.json(routes.createQueue, ({ caller, body }) => queues.create(caller, body));
  v1.json(routes.readQueue, ({ caller, params }) => queues.read(caller, params.queue_id));
  v1.json(routes.updateQueue, ({ caller, params, body }) => queues.update(caller, params.queue_id, body));
  v1.deletion(routes.deleteQueue, "Annotation queue", ({ caller, params }) => queues.delete(caller, params.queue_id));
  v1.json(routes.listQueuesOfRun, ({ caller, params }) => queues.listOfRun(caller, params.run_id));
  v1.json(routes.populateQueue, ({ caller, body }) => queues.populate(caller, body.queue_id, body.session_ids));

  const { addRuns, addRunsByKey, listRuns, readRunAt, updateRun, deleteRun, deleteRuns } = queueItemRoutes;

  for (const route of [addRuns, addRunsByKey])
    v1.json(route, ({ caller, params, body }) => items.add(caller, params.queue_id, body));
  v1.json(listRuns, ({ caller, params, query, context }) =>
    items.listRuns(caller, params.queue_id, query, apiUrlOf(context, base_url)),
  );
  v1.json(readRunAt, ({ caller, params, context }) =>
    items.readRunAt(caller, params.queue_id, params.index, apiUrlOf(context, base_url)),
  );
  v1.json(updateRun, ({ caller, params, body }) => items.update(caller, params.queue_id, params.queue_run_id, body));
  v1.deletion(deleteRun, "Run", ({ caller, params }) => items.deleteOne(caller, params.queue_id, params.queue_run_id));
  v1.deletion(deleteRuns, "Runs", ({ caller, params, body }) => items.delete(caller, params.queue_id, body));

  const { readSize, readTotalSize, readTotalArchived, setRunStatus, setItemStatus } = queueItemRoutes;

  v1.serve(readSize, async ({ caller, params, query, context }) =>
    context.json({ size: (await items.count(caller, params.queue_id, query)).value() }),
  );
  v1.serve(readTotalSize, async ({ caller, params, context }) =>
    context.json({ size: (await items.count(caller, params.queue_id, { status: "all" })).value() }),
  );
  v1.serve(readTotalArchived, async ({ caller, params, query, context }) =>
    context.json({ size: (await items.count(caller, params.queue_id, { ...query, status: "archived" })).value() }),
  );
  v1.json(setRunStatus, ({ caller, params, body }) => items.setStatus(caller, params.item_id, body));
  platform.json(setItemStatus, ({ caller, params, body }) => items.setStatus(caller, params.item_id, body));

  const { addItems, listItems, countItems, updateItem, deleteItems, readPlacement } = queueItemRoutes;

  platform.serve(addItems, async ({ caller, params, body, context }) =>
    context.json({ items: (await items.add(caller, params.queue_id, body.items)).value() }),
  );
  platform.json(listItems, ({ caller, params, query }) => items.list(caller, params.queue_id, query));
  platform.serve(countItems, async ({ caller, params, query, context }) =>
    context.json({ count: (await items.count(caller, params.queue_id, query)).value() }),
  );
  platform.json(updateItem, ({ caller, params, body }) => items.update(caller, params.queue_id, params.item_id, body));
  platform.deletion(deleteItems, "Items", ({ caller, params, body }) =>
    items.delete(caller, params.queue_id, { delete_all: false, run_ids: body.item_ids }),
  );
  platform.json(readPlacement, ({ caller, params }) => items.placement(caller, params.queue_id, params.item_id));
}
