import { fileURLToPath } from "node:url";
import type { Access } from "../../access/access.ts";
import { ApiKeys } from "../../access/keys/api-keys.ts";
import type { Vault } from "../../access/vault.ts";
import { Workspaces } from "../../access/workspaces.ts";
import type { Activation } from "../../agent-server/activation.ts";
import { Assistants } from "../../agent-server/assistants/assistants.ts";
import type { DefaultAssistants } from "../../agent-server/assistants/default-assistants.ts";
import type { AgentContext } from "../../agent-server/context.ts";
import type { Disconnects } from "../../agent-server/runs/disconnects.ts";
import { RunOverview } from "../../agent-server/runs/run-overview.ts";
import { Runs } from "../../agent-server/runs/runs.ts";
import { ThreadStates } from "../../agent-server/threads/thread-states.ts";
import { Threads } from "../../agent-server/threads/threads.ts";
import type { Config } from "../../config/config.ts";
import type { Control } from "../../control-plane/control.ts";
import type { DeploymentRouter } from "../../control-plane/router/deployment-router.ts";
import { EXPERIMENTS_INFO } from "../../experiments/contract/system.ts";
import type { ExperimentsService } from "../../experiments/worker/experiments-service.ts";
import { checkDatabase } from "../../platform/database/database.ts";
import type { BodyParser } from "../../platform/http/body-parser.ts";
import type { App } from "../../platform/http/route.ts";
import type { Log } from "../../platform/lib/log.ts";
import { isLoopback } from "../../platform/lib/safe-fetch/addresses.ts";
import type { DeploymentFront } from "../deployment-front.ts";

/** The version that clients check for features of the API. */
const API_LEVEL = "0.16.0";

/** The folder of the built web app. The relative path is the same in src/ and dist/. */
const WEB_DIR = fileURLToPath(new URL("../../../dist/web", import.meta.url));

/** The services that the routes call. */
interface HttpServices {
  access: Access;
  body_parser: BodyParser;
  disconnects: Disconnects;
  experiments: ExperimentsService;
  default_assistants: DefaultAssistants;
  activation: Activation;
  vault: Vault;
  control: Control;
  router: DeploymentRouter;
}

export async function createHttp(
  config: Config,
  context: AgentContext,
  services: HttpServices,
  log: Log,
): Promise<{ app: App; front: DeploymentFront }> {
  // Imported while the graph hosts load the graphs on another core, which saves 60 ms of the start.
  const { createApp } = await import("../app.ts");
  const { DeploymentFront } = await import("../deployment-front.ts");
  const { OriginPolicy } = await import("../origins.ts");
  const states = new ThreadStates(context);
  const is_loopback = isLoopback(config.host);
  const shared = {
    prefix: config.mount_prefix,
    access: services.access,
    cors: config.cors,
    allowed_hosts: is_loopback ? config.allowed_hosts : undefined,
    public_url: config.public_url,
    log,
  };
  const { router } = services;
  const origins = new OriginPolicy(shared);
  const front = new DeploymentFront({
    ...shared,
    origins,
    router,
    deployments_domain: config.deployments_domain,
    is_loopback,
  });
  const app = createApp({
    ...shared,
    origins,
    assistants: new Assistants(context),
    threads: new Threads(context, states),
    states,
    runs: new Runs(context, states),
    run_overview: new RunOverview(context),
    cancellations: context.engine.cancellations,
    ...services,
    heartbeat_ms: config.sse_heartbeat_ms,
    only: config.only,
    rollout: config.rollout,
    web_dir: WEB_DIR,
    keys: new ApiKeys(context),
    workspaces: new Workspaces(context),
    body_limit_bytes: config.body_limit_bytes,
    max_open_answers: config.max_open_per_user,
    info: {
      version: API_LEVEL,
      threadmill_version: config.threadmill_version,
      context: "js",
      flags: { assistants: true, crons: false, langsmith: false },
      metadata: {},
      ...EXPERIMENTS_INFO,
    },
    experiments_info: {
      version: API_LEVEL,
      threadmill_version: config.threadmill_version,
      ...EXPERIMENTS_INFO,
    },
    upload_limit_bytes: config.upload_limit_bytes,
    checkDatabase: (options) => checkDatabase(context.database, options),
  });
  return { app, front };
}
