import { OpenAPIHono } from "@hono/zod-openapi";
import type { Context, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { collectDefaultMetrics, type Registry } from "prom-client";
import { type AdminRoutesOptions, adminOpenApi, serveAdmin } from "../access/http/admin.ts";
import { Authentication, type CustomAuthentication, type OpenLimits } from "../access/http/auth.ts";
import type { UploadLimits } from "../access/http/upload-limit.ts";
import { type Access, isOperator } from "../access/index.ts";
import { agentServerInfo, agentServerRoutes } from "../agent-server/contract/routes.ts";
import type { ServerInfo } from "../agent-server/contract/system.ts";
import { type A2aRoutesOptions, serveA2a } from "../agent-server/http/a2a.ts";
import { serveAgUi } from "../agent-server/http/ag-ui.ts";
import { serveAssistants } from "../agent-server/http/assistants.ts";
import { serveCrons } from "../agent-server/http/crons.ts";
import { type InternalRoutesOptions, serveInternal } from "../agent-server/http/internal.ts";
import { type McpRoutesOptions, serveMcp } from "../agent-server/http/mcp.ts";
import { type RunRoutesOptions, serveRuns, serveWebhooks } from "../agent-server/http/runs.ts";
import { serveStore } from "../agent-server/http/store.ts";
import { serveThreadProtocol, type ThreadProtocolOptions } from "../agent-server/http/thread-protocol.ts";
import { serveThreads, type ThreadRoutesOptions } from "../agent-server/http/threads.ts";
import { serveUi, type UiRoutesOptions } from "../agent-server/http/ui.ts";
import type {
  Assistants,
  Crons,
  CustomEncryption,
  DefaultAssistants,
  Store,
  ThreadStates,
  Threads,
  WebhookDeliveries,
} from "../agent-server/index.ts";
import type { RouteGroup } from "../config/project.ts";
import { isSourceUpload } from "../control-plane/http/deployments.ts";
import {
  type ExperimentsAppOptions,
  experimentsOpenApi,
  hasOwnLimit,
  serveExperiments,
  serveIngestion,
} from "../experiments/http/app.ts";
import { CUSTOM_AUTH_HEADER } from "../platform/contract/caller.ts";
import { inEncryptionContext } from "../platform/database/encrypted-database.ts";
import { ApiError } from "../platform/errors.ts";
import { pathBelow } from "../platform/http/base-url.ts";
import type { BodyParser } from "../platform/http/body-parser.ts";
import { serveDocs } from "../platform/http/docs-page.ts";
import { type App, type Env, serve } from "../platform/http/route.ts";
import type { CorsSettings } from "../platform/lib/cors.ts";
import type { SelectHeaders } from "../platform/lib/header-selection.ts";
import type { Log } from "../platform/lib/log.ts";
import { CustomRoutes, type CustomRoutesOptions } from "./custom-routes.ts";
import { errorResponse } from "./error-response.ts";
import { onlyKnownHosts, requireJsonFromPages } from "./guards.ts";
import { httpMetrics, routeOf } from "./metrics.ts";
import {
  type ControlPlaneOptions,
  controlPlaneOpenApi,
  isControlPlane,
  serveControlPlane,
} from "./mount-control-plane.ts";
import { checkOrigin, type OriginPolicy } from "./origins.ts";
import { serveWebApp, type WebAppOptions } from "./web-app.ts";

export interface SystemOptions {
  info: ServerInfo;
  metrics: Registry;
  only: "agents" | undefined;
  /** Route groups of the agent server that langgraph.json disables. */
  disabled_routes: ReadonlySet<RouteGroup>;
  /** Path prefix of all routes, or an empty string. */
  prefix: string;
  /** See checkDatabase() in platform/database. */
  checkDatabase(options: { asks: boolean }): Promise<unknown>;
  /** Undefined if the project has no authentication handler. */
  custom_auth: CustomAuthentication | undefined;
}

export interface AppOptions
  extends RunRoutesOptions,
    McpRoutesOptions,
    A2aRoutesOptions,
    ThreadRoutesOptions,
    ThreadProtocolOptions,
    SystemOptions,
    ExperimentsAppOptions,
    AdminRoutesOptions,
    InternalRoutesOptions,
    UiRoutesOptions,
    ControlPlaneOptions,
    WebAppOptions {
  access: Access;
  /** The handlers of the project's authentication module. */
  custom_auth: CustomAuthentication | undefined;
  assistants: Assistants;
  crons: Crons;
  webhooks: WebhookDeliveries;
  store: Store;
  default_assistants: DefaultAssistants;
  threads: Threads;
  states: ThreadStates;
  origins: OriginPolicy;
  cors: CorsSettings;
  body_limit_bytes: number;
  /** Limits of open streams and of requests that wait for a result. They do not apply to `API_KEYS` or to a service without authentication. */
  max_open: OpenLimits;
  /** Limits of request bodies, for the same callers. */
  max_upload: UploadLimits;
  /** Accepted host names besides loopback names; undefined if the server does not listen on loopback. */
  allowed_hosts: readonly string[] | undefined;
  body_parser: BodyParser;
  /** Undefined if the project has no HTTP app. */
  custom_routes: CustomRoutesOptions | undefined;
  /** Undefined if the project does not encrypt stored values. */
  encryption: Pick<CustomEncryption, "contextOf"> | undefined;
  /** Request headers that are logged with slow and failed requests. */
  logging_headers: SelectHeaders | undefined;
  log: Log;
}

const BODILESS = new Set(["GET", "HEAD", "OPTIONS"]);

/** Whether the request has no body, or its handler has its own limit. */
const hasNoBodyLimit = ({ req }: Context, prefix: string): boolean =>
  BODILESS.has(req.method) ||
  hasOwnLimit(req.method, pathBelow(prefix, req.path)) ||
  isSourceUpload(req.method, req.path);

function bodyLimitOf(limit_bytes: number, log: Log): MiddlewareHandler<Env> {
  const refuse = async (context: Context): Promise<Response> =>
    errorResponse(new ApiError("body_too_large", { limit_bytes }), context, log);
  const countBytes = bodyLimit({ maxSize: limit_bytes, onError: refuse });
  return async (context, next) => {
    // Counting the bytes of a body creates a Request object of 4 KB and takes a quarter of the CPU time of a small request.
    const length = context.req.header("content-length");
    if (length === undefined || context.req.header("transfer-encoding") !== undefined) return countBytes(context, next);
    return Number(length) > limit_bytes ? refuse(context) : next();
  };
}

/** If paths are equal, the agent server takes precedence over the experiments because it is mounted first. */
export function createApp(options: AppOptions): App {
  const { prefix, log, logging_headers, body_limit_bytes } = options;
  const root: App = new OpenAPIHono<Env>();
  const app = (prefix === "" ? root : root.basePath(prefix)) as App;
  root.onError((error, context) => errorResponse(error, context, log, logging_headers));
  root.notFound((context) => errorResponse(notFound(context, prefix), context, log));

  root.use(timeRequests(options.metrics, log, logging_headers));
  if (options.allowed_hosts) root.use(onlyKnownHosts(options.allowed_hosts));
  root.use(checkOrigin(options.origins, prefix, options.cors));
  const limitBody = bodyLimitOf(body_limit_bytes, log);
  const { access, custom_routes } = options;
  const { max_open, max_upload, custom_auth: custom } = options;
  const authentication = new Authentication({ access, prefix, max_open, max_upload, custom });
  if (custom_routes) root.use(new CustomRoutes(custom_routes, { root, prefix, authentication, limitBody, log }).handle);
  root.use(authentication.ofService);
  if (options.encryption) root.use(encryptionContext(options.encryption));
  root.use(requireJsonFromPages(isSourceUpload));
  root.use((context, next) => (hasNoBodyLimit(context, prefix) ? next() : limitBody(context, next)));
  root.use((context, next) => {
    context.set("body_parser", options.body_parser);
    return next();
  });

  // The first request of a workspace creates its default assistants. Other requests cost one map lookup.
  for (const path of ["/assistants/*", "/threads/*", "/runs/*", "/mcp/*", "/ag-ui/*", "/a2a/*", "/.well-known/*"])
    app.use(path, async (context, next) => {
      await options.default_assistants.ensure(context.get("caller").tenant_id);
      await next();
    });

  serveSystem(app, options);
  if (options.only !== "agents") serveIngestion(app, options);
  const { disabled_routes } = options;
  if (!disabled_routes.has("assistants")) serveAssistants(app, options.assistants);
  if (!disabled_routes.has("threads")) {
    serveThreads(app, options);
    serveThreadProtocol(app, options);
  }
  if (!disabled_routes.has("runs")) {
    serveCrons(app, options.crons);
    serveRuns(app, options);
    serveAgUi(app, options);
    serveWebhooks(app, options.webhooks);
  }
  if (options.info.flags.mcp) serveMcp(app, options);
  if (options.info.flags.a2a) serveA2a(app, options);
  if (!disabled_routes.has("store")) serveStore(app, options.store);
  if (!disabled_routes.has("ui")) serveUi(app, options);
  serveInternal(app, options);
  if (options.only === "agents") return root;
  serveAdmin(app, options);
  serveControlPlane(app, options);
  serveExperiments(app, options);
  serveWebApp(app, options);
  return root;
}

/**
 * Returns the routes that a worker serves to the network: its health and its metrics, with all checks of `app`. The HTTP app of the project
 * does not get these requests. Graphs and webhooks call `app` itself, within the process.
 */
export function workerRoutes(app: App, { prefix, log }: Pick<AppOptions, "prefix" | "log">): App {
  const root: App = new OpenAPIHono<Env>();
  for (const path of ["/ok", "/metrics"])
    root.get(`${prefix}${path}`, ({ req }) => app.fetch(req.raw, { origin: "app" }));
  root.notFound((context) => {
    const { method, path } = context.req;
    return errorResponse(new ApiError("worker_route", { prefix, method, path }), context, log);
  });
  return root;
}

/** Determines the encryption context of the values that a request stores. Requests without a caller store nothing. */
function encryptionContext(encryption: Pick<CustomEncryption, "contextOf">): MiddlewareHandler<Env> {
  return async (context, next) => {
    const caller = context.get("caller") as Env["Variables"]["caller"] | undefined;
    const metadata = caller && (await encryption.contextOf(caller, context.req.header("x-encryption-context")));
    return metadata === undefined ? next() : inEncryptionContext(metadata, next);
  };
}

function serveSystem(app: App, options: SystemOptions): void {
  const { info, metrics, only, disabled_routes, prefix, checkDatabase, custom_auth } = options;
  serve(app, agentServerRoutes.system.ok, async ({ query, context }) => {
    await checkDatabase({ asks: query.check_db === true });
    return context.json({ ok: true }, 200, custom_auth && { [CUSTOM_AUTH_HEADER]: "1" });
  });
  app.get("/", (context) => {
    const isBrowser = context.req.header("accept")?.includes("text/html") ?? false;
    return context.redirect(isBrowser && !only ? `${prefix}/app` : `${prefix}/docs`);
  });
  if (disabled_routes.has("meta")) return;
  serve(app, agentServerRoutes.system.info, ({ context }) => context.json(info));
  let measuresProcess = false;
  serve(app, agentServerRoutes.system.metrics, async ({ query, caller, context }) => {
    if (!isOperator(caller)) throw new ApiError("metrics_forbidden");
    // Process metrics are collected from the first scrape on: without scrapes, no timers and observers run.
    if (!measuresProcess) collectDefaultMetrics({ register: metrics });
    measuresProcess = true;
    if (query.format === "json") return context.json(await metrics.getMetricsAsJSON());
    return context.body(await metrics.metrics(), 200, { "content-type": metrics.contentType });
  });
  app.get("/openapi.json", (context) => context.json(app.getOpenAPI31Document(agentServerInfo)));
  const read = () => app.getOpenAPI31Document(agentServerInfo);
  const agentServer = { title: "Agent server", page: "docs", json: "openapi.json", read };
  serveDocs(app, only ? [agentServer] : [agentServer, ...OTHER_DOCUMENTS]);
}

const OTHER_DOCUMENTS = [
  { title: "Experiments", page: "docs/experiments", json: "api/v1/openapi.json", read: experimentsOpenApi },
  { title: "Control plane", page: "docs/control-plane", json: "v2/openapi.json", read: controlPlaneOpenApi },
  { title: "Administration", page: "docs/admin", json: "admin/openapi.json", read: adminOpenApi },
];

function notFound({ req: { method, path } }: Context, prefix: string): ApiError {
  const below = pathBelow(prefix, path);
  if (below !== undefined && isControlPlane(below)) return new ApiError("not_found");
  return new ApiError("route_not_found", { method, path });
}

const SLOW_MS = 1_000;

/** Routes that wait for a run or an authorization flow, or respond with a stream. */
const WAITING_ROUTE = /\/(wait|join|stream)(\/|$)|\/a2a\/[^/]+$/;

/**
 * Measures requests, and logs those whose response starts after more than a second, unless they wait by design. As the first middleware,
 * it times all work.
 */
export function timeRequests(metrics: Registry, log: Log, logged?: SelectHeaders): MiddlewareHandler<Env> {
  const record = httpMetrics(metrics);
  return (context, next) => {
    const started_at = performance.now();
    return next().then(() => {
      const duration_ms = performance.now() - started_at;
      record(context, duration_ms);
      if (duration_ms > SLOW_MS) logSlow(context, Math.round(duration_ms), log, logged);
    });
  };
}

function logSlow(context: Context<Env>, duration_ms: number, log: Log, logged?: SelectHeaders): void {
  const { req, res } = context;
  const path = routeOf(context);
  const waits = !["false", "0", undefined].includes(req.query("wait"));
  if (waits || (path && WAITING_ROUTE.test(path)) || /event-stream/.test(res.headers.get("content-type") ?? "")) return;
  // Requests that fail authentication have no caller.
  const workspace_id = (context.get("caller") as Env["Variables"]["caller"] | undefined)?.tenant_id;
  const headers = logged && { headers: logged(req.header()) };
  log.info({ method: req.method, path, status: res.status, duration_ms, workspace_id, ...headers }, "slow request");
}
