import type { App } from "../../platform/http/route.ts";
import { serveAt } from "../../platform/http/serve-at.ts";
import { authServiceRoutes } from "../contract/routes.ts";
import type { Connections } from "../tokens/connections.ts";

export function serveConnections(app: App, mounts: readonly string[], connections: Connections): void {
  const routes = authServiceRoutes.connections;

  serveAt(app, mounts, routes.listConnections, async ({ caller, params, context }) =>
    context.json({ data: await connections.list(caller, params.agent_id) }),
  );

  serveAt(app, mounts, routes.createConnection, async ({ caller, params, body, context }) =>
    context.json(await connections.create(caller, params.agent_id, body.oauth_token_id), 201),
  );

  serveAt(app, mounts, routes.removeConnection, async ({ caller, params, context }) => {
    await connections.remove(caller, params.agent_id, params.connection_id);
    return context.body(null, 204);
  });

  serveAt(app, mounts, routes.putAgentToken, async ({ caller, params, body, context }) =>
    context.json(await connections.putToken(caller, params, body), 201),
  );
}
