import type { App } from "../../platform/http/route.ts";
import { serveAt } from "../../platform/http/serve-at.ts";
import { controlRoutes } from "../contract/routes.ts";
import type { Control } from "../control.ts";

export function serveListeners(app: App, mounts: readonly string[], { listeners }: Control): void {
  const routes = controlRoutes.listeners;

  serveAt(app, mounts, routes.listListeners, async ({ caller, query, context }) =>
    context.json(await listeners.list(caller, query)),
  );

  serveAt(app, mounts, routes.createListener, async ({ caller, body, context }) =>
    context.json(await listeners.create(caller, body), 201),
  );

  serveAt(app, mounts, routes.getListener, async ({ caller, params, context }) =>
    context.json(await listeners.get(caller, params.listener_id)),
  );

  serveAt(app, mounts, routes.patchListener, async ({ caller, params, body, context }) =>
    context.json(await listeners.patch(caller, params.listener_id, body)),
  );

  serveAt(app, mounts, routes.deleteListener, async ({ caller, params, context }) => {
    await listeners.delete(caller, params.listener_id);
    return context.body(null, 204);
  });
}
