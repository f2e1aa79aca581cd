import { OpenAPIHono } from "@hono/zod-openapi";
import type { Context, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { matchedRoutes } from "hono/route";
import { type AdminRoutesOptions, serveAdmin } from "../access/http/admin.ts";
import { authenticate } from "../access/http/auth.ts";
import type { Access } from "../access/index.ts";
import { agentServerInfo, agentServerRoutes } from "../agent-server/contract/routes.ts";
import type { ServerInfo } from "../agent-server/contract/system.ts";
import { type ActivationOptions, serveActivation } from "../agent-server/http/activation.ts";
import { serveAssistants } from "../agent-server/http/assistants.ts";
import { type RunRoutesOptions, serveRuns } from "../agent-server/http/runs.ts";
import { serveThreads, type ThreadRoutesOptions } from "../agent-server/http/threads.ts";
import type { Assistants, DefaultAssistants, ThreadStates, Threads } from "../agent-server/index.ts";
import { isSourceUpload } from "../control-plane/http/deployments.ts";
import { type ExperimentsAppOptions, serveExperiments, serveIngestion } from "../experiments/http/app.ts";
import { isTraceBody } from "../experiments/http/traces.ts";
import { UPLOAD_PATH } from "../experiments/http/upload.ts";
import { ApiError } from "../platform/errors.ts";
import { pathBelow } from "../platform/http/base-url.ts";
import type { BodyParser } from "../platform/http/body-parser.ts";
import { docsPage } from "../platform/http/docs-page.ts";
import { type App, type Env, serve } from "../platform/http/route.ts";
import type { CorsSettings } from "../platform/lib/cors.ts";
import type { Log } from "../platform/lib/log.ts";
import { errorResponse } from "./error-response.ts";
import { onlyKnownHosts, requireJsonFromPages } from "./guards.ts";
import { type ControlPlaneOptions, isControlPlane, serveControlPlane } from "./mount-control-plane.ts";
import { checkOrigin, type OriginPolicy } from "./origins.ts";
import { serveWebApp, type WebAppOptions } from "./web-app.ts";

export interface SystemOptions {
  info: ServerInfo;
  only: "agents" | undefined;
  /** Path prefix of all routes, or an empty string. */
  prefix: string;
  /** See checkDatabase() in platform/database. */
  checkDatabase(options: { asks: boolean }): Promise<unknown>;
}

export interface AppOptions
  extends RunRoutesOptions,
    ThreadRoutesOptions,
    SystemOptions,
    ExperimentsAppOptions,
    AdminRoutesOptions,
    ActivationOptions,
    ControlPlaneOptions,
    WebAppOptions {
  access: Access;
  assistants: Assistants;
  default_assistants: DefaultAssistants;
  threads: Threads;
  states: ThreadStates;
  origins: OriginPolicy;
  cors: CorsSettings;
  body_limit_bytes: number;
  /** Maximum number of open streams and waiting requests per user with a key or a JWT. */
  max_open_answers: number;
  /** Accepted host names besides those of loopback; undefined for other addresses. */
  allowed_hosts: readonly string[] | undefined;
  body_parser: BodyParser;
  log: Log;
}

const BODILESS = new Set(["GET", "HEAD", "OPTIONS"]);

/** Whether the request has no body, or its handler has its own limit. */
const hasNoBodyLimit = ({ req }: Context): boolean =>
  BODILESS.has(req.method) ||
  req.path.endsWith(UPLOAD_PATH) ||
  isTraceBody(req.path) ||
  isSourceUpload(req.method, req.path);

/** On equal paths, the agent server takes precedence over the experiments because it is mounted first. */
export function createApp(options: AppOptions): App {
  const { prefix, log, body_limit_bytes } = options;
  const root: App = new OpenAPIHono<Env>();
  const app = (prefix === "" ? root : root.basePath(prefix)) as App;
  root.onError((error, context) => errorResponse(error, context, log));
  root.notFound((context) => errorResponse(notFound(context, prefix), context, log));

  root.use(logSlowRequests(log));
  if (options.allowed_hosts) root.use(onlyKnownHosts(options.allowed_hosts));
  root.use(checkOrigin(options.origins, prefix, options.cors));
  root.use(authenticate(options.access, prefix, options.max_open_answers));
  root.use(requireJsonFromPages(isSourceUpload));
  const limitBody = bodyLimit({
    maxSize: body_limit_bytes,
    onError: (context) =>
      errorResponse(new ApiError("body_too_large", { limit_bytes: body_limit_bytes }), context, log),
  });
  // The body limit creates a Request of 4 KB, which a stream would retain.
  root.use((context, next) => (hasNoBodyLimit(context) ? next() : limitBody(context, next)));
  root.use((context, next) => {
    context.set("body_parser", options.body_parser);
    return next();
  });

  // The first request of a workspace creates its default assistants. Other requests cost one map lookup.
  for (const path of ["/assistants/*", "/threads/*", "/runs/*"])
    app.use(path, async (context, next) => {
      await options.default_assistants.ensure(context.get("caller").tenant_id);
      await next();
    });

  serveSystem(app, options);
  if (options.only !== "agents") serveIngestion(app, options);
  serveAssistants(app, options.assistants);
  serveThreads(app, options);
  serveRuns(app, options);
  serveActivation(app, options);
  if (options.only === "agents") return root;
  serveAdmin(app, options);
  serveControlPlane(app, options);
  serveExperiments(app, options);
  serveWebApp(app, options);
  return root;
}

function serveSystem(app: App, { info, only, prefix, checkDatabase }: SystemOptions): void {
  serve(app, agentServerRoutes.system.ok, async ({ query, context }) => {
    await checkDatabase({ asks: query.check_db === true });
    return context.json({ ok: true });
  });
  serve(app, agentServerRoutes.system.info, ({ context }) => context.json(info));
  app.get("/", (context) => {
    const isBrowser = context.req.header("accept")?.includes("text/html") ?? false;
    return context.redirect(isBrowser && !only ? `${prefix}/app` : `${prefix}/docs`);
  });
  app.get("/openapi.json", (context) => context.json(app.getOpenAPI31Document(agentServerInfo)));
  app.get("/docs", (context) => context.html(docsPage(app.getOpenAPI31Document(agentServerInfo))));
}

function notFound({ req: { method, path } }: Context, prefix: string): ApiError {
  const below = pathBelow(prefix, path);
  if (below !== undefined && isControlPlane(below)) return new ApiError("not_found");
  return new ApiError("route_not_found", { method, path });
}

const SLOW_MS = 1_000;

/** Routes that respond only after a run, a flow or a stream has ended. */
const WAITING_ROUTE = /\/(wait|join|stream)(\/|$)/;

/** Logs requests whose response starts after more than a second, unless they wait by design. As the first middleware, it times all work. */
export function logSlowRequests(log: Log): MiddlewareHandler<Env> {
  return (context, next) => {
    const started_at = performance.now();
    return next().then(() => {
      const duration_ms = performance.now() - started_at;
      if (duration_ms > SLOW_MS) logSlow(context, Math.round(duration_ms), log);
    });
  };
}

function logSlow(context: Context<Env>, duration_ms: number, log: Log): void {
  const { req, res } = context;
  // Middleware is registered for all methods.
  const path = matchedRoutes(context).find(({ method }) => method !== "ALL")?.path;
  const waits = !["false", "0", undefined].includes(req.query("wait"));
  if (waits || (path && WAITING_ROUTE.test(path)) || /event-stream/.test(res.headers.get("content-type") ?? "")) return;
  // Requests that fail authentication have no caller.
  const workspace_id = (context.get("caller") as Env["Variables"]["caller"] | undefined)?.tenant_id;
  log.info({ method: req.method, path, status: res.status, duration_ms, workspace_id }, "slow request");
}
