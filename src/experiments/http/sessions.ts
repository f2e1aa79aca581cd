import { type App, jsonText } from "../../platform/http/route.ts";
import { experimentRoutes } from "../contract/routes.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import { gone } from "./gone.ts";
import { serveAt } from "./route.ts";

export function serveSessions(app: App, at: readonly string[], { sessions }: ExperimentsService): void {
  const routes = experimentRoutes.sessions;

  serveAt(app, at, routes.listSessions, async ({ caller, query }) =>
    jsonText((await sessions.list(caller, query)).json),
  );

  serveAt(app, at, routes.createSession, async ({ caller, query, body }) =>
    jsonText((await sessions.create(caller, body, query.upsert)).json),
  );

  serveAt(app, at, routes.readSession, async ({ caller, params, query }) =>
    jsonText((await sessions.read(caller, params.session_id, query.include_stats)).json),
  );

  serveAt(app, at, routes.updateSession, async ({ caller, params, body }) =>
    jsonText((await sessions.update(caller, params.session_id, body)).json),
  );

  serveAt(app, at, routes.deleteSession, async ({ caller, params, context }) => {
    await sessions.delete(caller, params.session_id);
    return gone(context, "Session");
  });
}
