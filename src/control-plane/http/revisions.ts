import type { BaseUrlOptions } from "../../platform/http/base-url.ts";
import type { App } from "../../platform/http/route.ts";
import { serveAt } from "../../platform/http/serve-at.ts";
import { controlRoutes } from "../contract/routes.ts";
import type { Control } from "../control.ts";
import { askingOf } from "./asking.ts";

export function serveRevisions(
  app: App,
  mounts: readonly string[],
  { revisions }: Control,
  options: BaseUrlOptions,
): void {
  const routes = controlRoutes.revisions;

  serveAt(app, mounts, routes.listRevisions, async ({ caller, params, query, context }) =>
    context.json(await revisions.list(caller, params.deployment_id, query)),
  );

  serveAt(app, mounts, routes.createRevision, async ({ caller, params, body, context }) =>
    context.json(await revisions.create(caller, params.deployment_id, body), 201),
  );

  serveAt(app, mounts, routes.getRevision, async ({ caller, params, context }) =>
    context.json(await revisions.get(caller, params)),
  );

  serveAt(app, mounts, routes.redeployRevision, async ({ params, context }) =>
    context.json(await revisions.redeploy(askingOf(context, options), params)),
  );

  for (const route of [routes.interruptRevision, routes.interruptRevisionAlias] as const)
    serveAt(app, mounts, { ...route, path: route.path as string }, async ({ caller, params, context }) =>
      context.json(await revisions.interrupt(caller, params)),
    );
}
