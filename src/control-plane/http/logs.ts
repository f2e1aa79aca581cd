import type { App } from "../../platform/http/route.ts";
import { serveAt } from "../../platform/http/serve-at.ts";
import type { LogsQuery } from "../contract/logs.ts";
import { controlRoutes } from "../contract/routes.ts";
import type { Control } from "../control.ts";
import type { LogQuestion } from "../logs.ts";

export function serveLogs(app: App, mounts: readonly string[], { logs }: Control): void {
  const routes = controlRoutes.logs;

  serveAt(app, mounts, routes.getRevisionLogs, async ({ caller, params, query, context }) => {
    const { type: kind, offset: cursor, ...rest } = query;
    return context.json(await logs.list(caller, params, { ...rest, kind, cursor }));
  });

  serveAt(app, mounts, routes.getLogs, async ({ caller, params, query, context }) => {
    const { type: kind, offset: cursor, ...rest } = query;
    return context.json(await logs.list(caller, params, { ...rest, kind, cursor }));
  });

  serveAt(app, mounts, routes.listLogs, async ({ caller, query, context }) => {
    const { deployment_id, revision_id, log_type, sort_order: order, page_size: limit, ...rest } = query;
    const kind = log_type === "BUILD" ? "build" : "deploy";
    const page = await logs.list(caller, { deployment_id, revision_id }, { ...rest, kind, order, limit });
    return context.json({ items: page.logs, next_cursor: page.next_offset });
  });

  serveAt(app, mounts, routes.postBuildLogs, async ({ caller, params, body, context }) =>
    context.json(await logs.follow(caller, params, questionOf("build", body))),
  );

  serveAt(app, mounts, routes.postRevisionDeployLogs, async ({ caller, params, body, context }) =>
    context.json(await logs.list(caller, params, questionOf("deploy", body))),
  );

  serveAt(app, mounts, routes.postDeployLogs, async ({ caller, params, body, context }) =>
    context.json(await logs.list(caller, params, questionOf("deploy", body))),
  );
}

const questionOf = (
  kind: "build" | "deploy",
  { limit = 50, order = "asc", offset: cursor, ...rest }: LogsQuery,
): LogQuestion => ({ ...rest, kind, limit, order, cursor });
