import { type App, serve } from "../../platform/http/route.ts";
import { storeRoutes } from "../contract/store.ts";
import type { Store } from "../store/store.ts";

export function serveStore(app: App, store: Store): void {
  serve(app, storeRoutes.putItem, async ({ caller, body, context }) => {
    await store.put(caller.tenant_id, [body]);
    return context.body(null, 204);
  });

  serve(app, storeRoutes.getItem, async ({ caller, query, context }) =>
    context.json(await store.get(caller.tenant_id, query)),
  );

  serve(app, storeRoutes.deleteItem, async ({ caller, body, context }) => {
    await store.delete(caller.tenant_id, body);
    return context.body(null, 204);
  });

  serve(app, storeRoutes.searchItems, async ({ caller, body, context }) =>
    context.json({ items: await store.search(caller.tenant_id, body) }),
  );

  serve(app, storeRoutes.listNamespaces, async ({ caller, body, context }) =>
    context.json({ namespaces: await store.listNamespaces(caller.tenant_id, body) }),
  );
}
