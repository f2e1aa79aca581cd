import { fileURLToPath } from "node:url";
import { listWorkspaces } from "../../access/index.ts";
import { ApiKeys } from "../../access/keys/api-keys.ts";
import { Workspaces } from "../../access/workspaces.ts";
import { Assistants } from "../../agent-server/assistants/assistants.ts";
import type { AgentContext } from "../../agent-server/context.ts";
import { Crons } from "../../agent-server/crons/crons.ts";
import type { AppHost } from "../../agent-server/graph-hosts/app-host.ts";
import { A2aTasks } from "../../agent-server/protocols/a2a/tasks.ts";
import { ToolCalls } from "../../agent-server/protocols/mcp/tool-calls.ts";
import { Tools } from "../../agent-server/protocols/mcp/tools.ts";
import { ThreadCommands } from "../../agent-server/protocols/thread-protocol/commands.ts";
import { ThreadStreams } from "../../agent-server/protocols/thread-protocol/thread-streams.ts";
import { RunOverview } from "../../agent-server/runs/run-overview.ts";
import { Runs } from "../../agent-server/runs/runs.ts";
import { ThreadStates } from "../../agent-server/threads/thread-states.ts";
import { Threads } from "../../agent-server/threads/threads.ts";
import { WebhookDeliveries } from "../../agent-server/webhooks/webhook-deliveries.ts";
import type { Config } from "../../config/config.ts";
import type { DeploymentRouter } from "../../control-plane/router/deployment-router.ts";
import { EXPERIMENTS_INFO } from "../../experiments/contract/system.ts";
import { checkDatabase } from "../../platform/database/database.ts";
import type { App } from "../../platform/http/route.ts";
import type { Log } from "../../platform/lib/log.ts";
import { isLoopback } from "../../platform/lib/safe-fetch/addresses.ts";
import type { AppOptions } from "../app.ts";
import type { DeploymentFront } from "../deployment-front.ts";

/** The API version that the service reports, from which clients infer its features. Version 0.16.14 added items to annotation queues. */
const API_LEVEL = "0.16.14";

/** The built web app. The relative path is the same in src/ and dist/. */
const WEB_DIR = fileURLToPath(new URL("../../../dist/web", import.meta.url));

/** A2A tasks are runs on threads. */
const isA2aServed = ({ disabled_routes }: Config): boolean =>
  (["a2a", "assistants", "threads", "runs"] as const).every((group) => !disabled_routes.has(group));

type HttpServices = { router: DeploymentRouter; app_host: AppHost | undefined } & Pick<
  AppOptions,
  | "metrics"
  | "thread_retention"
  | "access"
  | "body_parser"
  | "disconnects"
  | "encryption"
  | "experiments"
  | "default_assistants"
  | "activation"
  | "trace_outbox"
  | "ui_bundles"
  | "vault"
  | "control"
>;

/** The MCP server lists assistants and creates runs, so it is not served without their routes. */
const isMcpServed = ({ disabled_routes }: Config): boolean =>
  (["mcp", "assistants", "runs"] as const).every((group) => !disabled_routes.has(group));

/** @returns `app` for requests from within the process, and `served` and `front` for those from the network */
export async function createHttp(
  config: Config,
  context: AgentContext,
  services: HttpServices,
  log: Log,
): Promise<{ app: App; served: App; front: DeploymentFront | undefined }> {
  // Imported here, while the graph hosts load the graphs on other cores. This shortens the startup by 60 ms.
  const { createApp, workerRoutes } = await import("../app.ts");
  const { DeploymentFront } = await import("../deployment-front.ts");
  const { OriginPolicy } = await import("../origins.ts");
  const { addConnectionMetrics } = await import("../metrics.ts");
  const states = new ThreadStates(context);
  const runs = new Runs(context, states);
  const is_loopback = isLoopback(config.host);
  const shared = {
    prefix: config.mount_prefix,
    access: services.access,
    custom_auth: context.auth,
    cors: config.cors,
    allowed_hosts: is_loopback ? config.allowed_hosts : undefined,
    public_url: config.public_url,
    log,
  };
  const { router } = services;
  const { deployments_domain, threadmill_version } = config;
  const origins = new OriginPolicy(shared);
  const isWorker = config.role === "worker";
  const front = isWorker
    ? undefined
    : new DeploymentFront({ ...shared, origins, router, deployments_domain, is_loopback });
  addConnectionMetrics(services.metrics, context.database);
  const assistants = new Assistants(context);
  const { cancellations } = context.engine;
  const app = createApp({
    ...shared,
    origins,
    assistants,
    threads: new Threads(context, states),
    states,
    thread_commands: new ThreadCommands(context, runs, states),
    thread_streams: new ThreadStreams(context),
    runs,
    crons: new Crons(context, runs),
    webhooks: new WebhookDeliveries(context.database),
    store: context.engine.store,
    run_overview: new RunOverview(context),
    cancellations,
    mcp: {
      tools: new Tools(context, assistants),
      calls: new ToolCalls(context, runs, cancellations),
      version: threadmill_version,
    },
    a2a: {
      tasks: new A2aTasks(context, { runs, assistants, cancellations }, services.body_parser),
      catalog: context.catalog,
      requiresKey: async () => !context.auth && !(await services.access.isOpen()),
    },
    ...services,
    heartbeat_ms: config.sse_heartbeat_ms,
    custom_routes: services.app_host && config.http_app && { host: services.app_host, ...config.http_app },
    only: config.only,
    disabled_routes: config.disabled_routes,
    configurable_headers: config.configurable_headers,
    logging_headers: config.logging_headers,
    rollout: config.rollout,
    web_dir: WEB_DIR,
    keys: new ApiKeys(context),
    workspaces: new Workspaces(context),
    body_limit_bytes: config.body_limit_bytes,
    max_open: { per_user: config.max_open_per_user, per_workspace: config.max_open_per_workspace },
    max_upload: { per_user: config.max_upload_per_user, per_workspace: config.max_upload_per_workspace },
    metrics: services.metrics,
    info: {
      version: API_LEVEL,
      threadmill_version,
      context: "js",
      flags: {
        assistants: true,
        crons: true,
        langsmith: false,
        mcp: isMcpServed(config),
        a2a: isA2aServed(config),
        strict_resume: true,
        stream_namespaces: true,
      },
      metadata: {},
      host: {
        kind: "self-hosted",
        project_id: config.graph_env.LANGSMITH_HOST_PROJECT_ID ?? null,
        tenant_id: config.graph_env.LANGSMITH_TENANT_ID ?? null,
      },
      ...EXPERIMENTS_INFO,
    },
    experiments_info: { version: API_LEVEL, threadmill_version, ...EXPERIMENTS_INFO },
    upload_limit_bytes: config.upload_limit_bytes,
    readWorkspace: async (tenant_id) => (await listWorkspaces(context.database.read, tenant_id))[0],
    checkDatabase: (options) => checkDatabase(context.database, options),
  });
  return { app, served: isWorker ? workerRoutes(app, shared) : app, front };
}
