import { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import { bodyLimit } from "hono/body-limit";
import { type AdminRoutesOptions, serveAdmin } from "../access/http/admin.ts";
import { authenticate } from "../access/http/auth.ts";
import type { Access } from "../access/index.ts";
import { type ActivationOptions, serveActivation } from "../agent-server/http/activation.ts";
import { serveAssistants } from "../agent-server/http/assistants.ts";
import { type RunRoutesOptions, serveRuns } from "../agent-server/http/runs.ts";
import { serveThreads, type ThreadRoutesOptions } from "../agent-server/http/threads.ts";
import type { Assistants, DefaultAssistants, ThreadStates, Threads } from "../agent-server/index.ts";
import { isSourceUpload } from "../control-plane/http/uploads.ts";
import { type ExperimentsAppOptions, serveExperiments } from "../experiments/http/app.ts";
import { UPLOAD_PATH } from "../experiments/http/upload.ts";
import { ApiError } from "../platform/errors.ts";
import { pathBelow } from "../platform/http/base-url.ts";
import type { BodyParser } from "../platform/http/body-parser.ts";
import type { App, Env } from "../platform/http/route.ts";
import type { CorsSettings } from "../platform/lib/cors.ts";
import type { Log } from "../platform/lib/log.ts";
import { type ControlPlaneOptions, isControlPlane, serveControlPlane } from "./control-plane.ts";
import { errorResponse } from "./error-response.ts";
import { jsonFromPages, onlyKnownHosts } from "./guards.ts";
import { checkOrigin, type OriginPolicy } from "./origins.ts";
import { type SystemOptions, serveSystem } from "./system.ts";
import { serveWebApp, type WebAppOptions } from "./web-app.ts";

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
  /** Set when nothing but the agent server is to be served. */
  only: "agents" | undefined;
  origins: OriginPolicy;
  cors: CorsSettings;
  body_limit_bytes: number;
  /** Streams and waits that a user with a key or a JWT may have open. */
  most_open_answers: number;
  /** Set on a loopback address: the names, besides loopback's own, that it is called by. */
  allowed_hosts: readonly string[] | undefined;
  body_parser: BodyParser;
  log: Log;
}

const BODILESS = new Set(["GET", "HEAD", "OPTIONS"]);

/** Whether a request has no body, or counts it itself while it arrives. */
const isFree = ({ req }: Context): boolean =>
  BODILESS.has(req.method) || req.path.endsWith(UPLOAD_PATH) || isSourceUpload(req.method, req.path);

/** The HTTP interface. Experiments come last: where a path could be either's, it is the agent server's. */
export function createApp(options: AppOptions): App {
  const { prefix, log, body_limit_bytes } = options;
  const root: App = new OpenAPIHono<Env>();
  const app = (prefix === "" ? root : root.basePath(prefix)) as App;
  root.onError((error, context) => errorResponse(error, context, log));
  root.notFound((context) => errorResponse(notFound(context, prefix), context, log));

  if (options.allowed_hosts) root.use(onlyKnownHosts(options.allowed_hosts));
  root.use(checkOrigin(options.origins, prefix, options.cors));
  root.use(authenticate(options.access, prefix, options.most_open_answers));
  root.use(jsonFromPages(isSourceUpload));
  const limitBody = bodyLimit({
    maxSize: body_limit_bytes,
    onError: (context) =>
      errorResponse(new ApiError("body_too_large", { limit_bytes: body_limit_bytes }), context, log),
  });
  // It makes a whole Request of each, 4 KB that a stream would hold on to for as long as it is open.
  root.use((context, next) => (isFree(context) ? next() : limitBody(context, next)));

  root.use((context, next) => {
    context.set("body_parser", options.body_parser);
    return next();
  });

  // A workspace has its default assistants from the first time that it is met; after that this is a look into a map.
  for (const path of ["/assistants/*", "/threads/*", "/runs/*"])
    app.use(path, async (context, next) => {
      await options.default_assistants.meet(context.get("caller").tenant_id);
      await next();
    });

  serveSystem(app, options);
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

function notFound({ req: { method, path } }: Context, prefix: string): ApiError {
  const below = pathBelow(prefix, path);
  if (below !== undefined && isControlPlane(below)) return new ApiError("not_found");
  return new ApiError("route_not_found", { method, path });
}
