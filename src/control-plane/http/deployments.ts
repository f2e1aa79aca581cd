import type { RouteConfig } from "@hono/zod-openapi";
import type { Context } from "hono";
import { ApiError } from "../../platform/errors.ts";
import { type BaseUrlOptions, baseUrlOf, mountOf } from "../../platform/http/base-url.ts";
import { fastapiErrors, fastapiInput, serveAt } from "../../platform/http/fastapi.ts";
import {
  type App,
  type Env,
  type Handler,
  handleRoute,
  type InputRules,
  withoutNul,
} from "../../platform/http/route.ts";
import type { LogsQuery } from "../contract/logs.ts";
import { controlRoutes } from "../contract/routes.ts";
import type { Control } from "../control.ts";
import type { RequestContext } from "../deployments/deployments.ts";
import type { DeploymentLogQuery } from "../logs.ts";

/** Reads `deployment_ids` as a list, because the parameter can be repeated. */
const repeatedIds: InputRules = {
  ...fastapiInput,
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
    context.json(await deployments.list(requestContextOf(context, options), query)),
  );

  serveAt(app, mounts, routes.createDeployment, async ({ body, context }) =>
    context.json(await deployments.create(requestContextOf(context, options), body), 201),
  );

  for (const mount of mounts) {
    const route = { ...routes.deleteDeployments, path: `${mount}${routes.deleteDeployments.path}` };
    const handler: Handler<typeof routes.deleteDeployments> = async ({ caller, query, context }) => {
      const result = await deployments.deleteMany(caller, query.deployment_ids);
      return context.json(result, result.not_found.length === 0 ? 200 : 207);
    };
    handleRoute(app, route, handler as Handler<RouteConfig>, fastapiErrors, repeatedIds);
  }

  serveAt(app, mounts, routes.countFreeDeployments, async ({ caller, context }) =>
    context.json(await deployments.countFree(caller)),
  );

  serveAt(app, mounts, routes.getDeployment, async ({ params, context }) =>
    context.json(await deployments.get(requestContextOf(context, options), params.deployment_id)),
  );

  serveAt(app, mounts, routes.patchDeployment, async ({ params, body, context }) =>
    context.json(await deployments.patch(requestContextOf(context, options), params.deployment_id, body)),
  );

  serveAt(app, mounts, routes.deleteDeployment, async ({ caller, params, context }) => {
    await deployments.delete(caller, params.deployment_id);
    return context.body(null, 204);
  });

  serveAt(app, mounts, routes.createUploadUrl, async ({ params, context }) => {
    const { caller, base_url } = requestContextOf(context, options);
    const mounted = { caller, base_url: base_url + mountOf(context, mounts, options) };
    return context.json(await uploads.createUrl(mounted, params.deployment_id));
  });

  serveAt(app, mounts, routes.createPushToken, ({ caller, params }) =>
    deployments.refusePushToken(caller, params.deployment_id),
  );
}

const requestContextOf = (context: Context<Env>, options: BaseUrlOptions): RequestContext => ({
  caller: context.get("caller"),
  base_url: baseUrlOf(context, options),
});

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
    context.json(await revisions.redeploy(requestContextOf(context, options), params)),
  );

  for (const route of [routes.interruptRevision, routes.interruptRevisionAlias] as const)
    serveAt(app, mounts, { ...route, path: route.path as string }, async ({ caller, params, context }) =>
      context.json(await revisions.interrupt(caller, params)),
    );
}

/** Path of uploads, below any prefix and mount point. */
const UPLOAD = /\/v2\/uploads\/[^/]+$/;

/** Whether a request uploads a tarball. The size of an upload is checked while the body is read. */
export const isSourceUpload = (method: string, path: string): boolean => method === "PUT" && UPLOAD.test(path);

/** Receives uploads. Upload URLs contain a token, so no API key is required. */
export function serveUploads(app: App, mounts: readonly string[], { uploads }: Control): void {
  for (const mount of mounts) {
    app.put(`${mount}/v2/uploads/:name`, async (context) => {
      const { req } = context;
      const length = req.header("content-length");
      const received = await uploads.receive(
        {
          object_path: `uploads/${req.param("name")}`,
          token: req.query("token") ?? "",
          declared_bytes: length === undefined ? undefined : Number(length),
        },
        bodyChunks(req.raw),
      );
      return context.json(received);
    });
  }
}

/** Reads the body on demand. The rest of a rejected body is discarded, and the connection stays open. */
async function* bodyChunks(request: Request): AsyncGenerator<Uint8Array> {
  yield* request.body ?? [];
}

export function serveLogs(app: App, mounts: readonly string[], { logs }: Control): void {
  const routes = controlRoutes.logs;

  for (const route of [routes.getRevisionLogs, routes.getLogs] as const)
    serveAt(app, mounts, { ...route, path: route.path as string }, async ({ caller, params, query, context }) => {
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
    context.json(await logs.follow(caller, params, queryOf("build", body))),
  );

  for (const route of [routes.postRevisionDeployLogs, routes.postDeployLogs] as const)
    serveAt(app, mounts, { ...route, path: route.path as string }, async ({ caller, params, body, context }) =>
      context.json(await logs.list(caller, params, queryOf("deploy", body))),
    );
}

const queryOf = (
  kind: "build" | "deploy",
  { limit = 50, order = "asc", offset: cursor, ...rest }: LogsQuery,
): DeploymentLogQuery => ({ ...rest, kind, limit, order, cursor });

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

  serveAt(app, mounts, routes.connectListener, async ({ caller, params, context }) => {
    const accept = context.env?.accept;
    if (!accept) throw new ApiError("invalid_request", { reason: "Open a WebSocket at this path." });
    const connections = await listeners.connectionsFor(caller, params.listener_id);
    const onAccessEnd = context.get("onAccessEnd");
    accept((socket) => {
      connections.accept(params.listener_id, socket);
      const unwatch = onAccessEnd(() => socket.close());
      socket.once("close", unwatch);
    });
    return context.body(null);
  });

  serveAt(app, mounts, routes.deleteListener, async ({ caller, params, context }) => {
    await listeners.delete(caller, params.listener_id);
    return context.body(null, 204);
  });
}

/** Deployments refer to repositories by URL and need no GitHub App, so all lists are empty. */
export function serveIntegrations(app: App, mounts: readonly string[]): void {
  const routes = controlRoutes.integrations;
  serveAt(app, mounts, routes.listInstallations, ({ context }) => context.json([]));
  serveAt(app, mounts, routes.listRepositories, ({ context }) => context.json([]));
  serveAt(app, mounts, routes.listForgeInstallations, ({ context }) => context.json([]));
  serveAt(app, mounts, routes.listForgeRepositories, ({ context }) => context.json([]));
}
