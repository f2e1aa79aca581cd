import type { RouteConfig } from "@hono/zod-openapi";
import { type BaseUrlOptions, mountOf } from "../../platform/http/base-url.ts";
import { byPart } from "../../platform/http/fastapi-errors.ts";
import { lastWins, type Reading, withoutNul } from "../../platform/http/reading.ts";
import { type App, answer, type Handler } from "../../platform/http/route.ts";
import { serveAt } from "../../platform/http/serve-at.ts";
import { controlRoutes } from "../contract/routes.ts";
import type { Control } from "../control.ts";
import { askingOf } from "./asking.ts";

/** The one query whose repeated values are a list. */
const severalIds: Reading = {
  ...lastWins,
  query({ req }): Record<string, string[]> {
    const deployment_ids = req.queries("deployment_ids")?.map(withoutNul);
    return deployment_ids ? { deployment_ids } : {};
  },
};

export function serveDeployments(
  app: App,
  mounts: readonly string[],
  { deployments, uploads }: Control,
  options: BaseUrlOptions,
): void {
  const routes = controlRoutes.deployments;

  serveAt(app, mounts, routes.listDeployments, async ({ query, context }) =>
    context.json(await deployments.list(askingOf(context, options), query)),
  );

  serveAt(app, mounts, routes.createDeployment, async ({ body, context }) =>
    context.json(await deployments.create(askingOf(context, options), body), 201),
  );

  for (const mount of mounts) {
    const route = { ...routes.deleteDeployments, path: `${mount}${routes.deleteDeployments.path}` };
    const handler: Handler<typeof routes.deleteDeployments> = async ({ caller, query, context }) => {
      const ends = await deployments.deleteMany(caller, query.deployment_ids);
      return context.json(ends, ends.not_found.length === 0 ? 200 : 207);
    };
    answer(app, route, handler as Handler<RouteConfig>, byPart, severalIds);
  }

  serveAt(app, mounts, routes.countFreeDeployments, async ({ caller, context }) =>
    context.json(await deployments.countFree(caller)),
  );

  serveAt(app, mounts, routes.getDeployment, async ({ params, context }) =>
    context.json(await deployments.get(askingOf(context, options), params.deployment_id)),
  );

  serveAt(app, mounts, routes.patchDeployment, async ({ params, body, context }) =>
    context.json(await deployments.patch(askingOf(context, options), params.deployment_id, body)),
  );

  serveAt(app, mounts, routes.deleteDeployment, async ({ caller, params, context }) => {
    await deployments.delete(caller, params.deployment_id);
    return context.body(null, 204);
  });

  serveAt(app, mounts, routes.createUploadUrl, async ({ params, context }) => {
    const asking = askingOf(context, options);
    const base_url = asking.base_url + mountOf(context, mounts, options);
    return context.json(await uploads.createUrl({ ...asking, base_url }, params.deployment_id));
  });

  serveAt(app, mounts, routes.createPushToken, ({ caller, params }) =>
    deployments.refusePushToken(caller, params.deployment_id),
  );
}
