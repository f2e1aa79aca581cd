import type { App } from "../../platform/http/route.ts";
import { serveAt } from "../../platform/http/serve-at.ts";
import { authServiceRoutes } from "../contract/routes.ts";
import type { Providers } from "../oauth/providers.ts";

export function serveProviders(app: App, mounts: readonly string[], providers: Providers): void {
  const routes = authServiceRoutes.providers;

  serveAt(app, mounts, routes.listProviders, async ({ caller, context }) => context.json(await providers.list(caller)));

  serveAt(app, mounts, routes.createProvider, async ({ caller, body, context }) =>
    context.json(await providers.create(caller, body)),
  );

  serveAt(app, mounts, routes.getProvider, async ({ caller, params, context }) =>
    context.json(await providers.get(caller, params.provider_id)),
  );

  serveAt(app, mounts, routes.updateProvider, async ({ caller, params, body, context }) =>
    context.json(await providers.update(caller, params.provider_id, body)),
  );

  serveAt(app, mounts, routes.deleteProvider, async ({ caller, params, context }) => {
    await providers.delete(caller, params.provider_id);
    return context.json({ message: `OAuth provider '${params.provider_id}' deleted` });
  });

  serveAt(app, mounts, routes.listPlatformProviders, ({ context }) => context.json([]));
}
