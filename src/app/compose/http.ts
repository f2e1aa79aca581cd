import { fileURLToPath } from "node:url";
import type { Access } from "../../access/access.ts";
import { ApiKeys } from "../../access/keys/api-keys.ts";
import type { Vault } from "../../access/vault.ts";
import { Workspaces } from "../../access/workspaces.ts";
import type { Activation } from "../../agent-server/activation.ts";
import { Assistants } from "../../agent-server/assistants.ts";
import type { Cancellations } from "../../agent-server/cancellations.ts";
import type { AgentContext } from "../../agent-server/context.ts";
import type { DefaultAssistants } from "../../agent-server/default-assistants.ts";
import type { Disconnects } from "../../agent-server/disconnects.ts";
import { RunOverview } from "../../agent-server/run-overview.ts";
import { Runs } from "../../agent-server/runs.ts";
import { ThreadStates } from "../../agent-server/thread-states.ts";
import { Threads } from "../../agent-server/threads.ts";
import type { Config } from "../../config/config.ts";
import type { Control } from "../../control-plane/control.ts";
import type { DeploymentRouter } from "../../control-plane/router/deployment-router.ts";
import type { ExperimentsService } from "../../experiments/worker/experiments-service.ts";
import { checkDatabase } from "../../platform/database/check-database.ts";
import type { BodyParser } from "../../platform/http/body-parser.ts";
import type { App } from "../../platform/http/route.ts";
import type { Log } from "../../platform/lib/log.ts";
import { isLoopback } from "../../platform/lib/loopback.ts";
import type { DeploymentFront } from "../deployment-front.ts";

/** What clients compare to know which features of the API they may use. */
const API_LEVEL = "0.16.0";

/** Where the pages are built to. It is as far from here in the source as it is in dist/. */
const WEB_DIR = fileURLToPath(new URL("../../../dist/web", import.meta.url));

/**
 * What the clients of the experiments look for. `sdb_query_enabled` would let them use all of version 2 of the original, of
 * which only runs and comparisons are here; traces are not taken, so there is no ingest.
 */
const EXPERIMENTS_INFO = {
  instance_flags: {
    dataset_examples_multipart_enabled: true,
    examples_multipart_enabled: true,
    sdb_query_enabled: false,
  },
  // All fields of the original: a thread of the Python client ends with a KeyError where one is missing.
  batch_ingest_config: {
    use_multipart_endpoint: false,
    scale_up_qsize_trigger: 1000,
    scale_up_nthreads_limit: 16,
    scale_down_nempty_trigger: 4,
    size_limit: 100,
    size_limit_bytes: 20_971_520,
  },
  license_expiration_time: null,
  customer_info: null,
} as const;

/** What the routes call. */
interface Parts {
  access: Access;
  body_parser: BodyParser;
  cancellations: Cancellations;
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
  parts: Parts,
  log: Log,
): Promise<{ app: App; front: DeploymentFront }> {
  // Loaded while the graph hosts load the graphs on another core: 60 ms of the start.
  const { createApp } = await import("../app.ts");
  const { DeploymentFront } = await import("../deployment-front.ts");
  const { OriginPolicy } = await import("../origins.ts");
  const states = new ThreadStates(context);
  const is_loopback = isLoopback(config.host);
  const shared = {
    prefix: config.mount_prefix,
    access: parts.access,
    cors: config.cors,
    allowed_hosts: is_loopback ? config.allowed_hosts : undefined,
    public_url: config.public_url,
    log,
  };
  const { router } = parts;
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
    ...parts,
    heartbeat_ms: config.sse_heartbeat_ms,
    only: config.only,
    rollout: config.rollout,
    web_dir: WEB_DIR,
    keys: new ApiKeys(context),
    workspaces: new Workspaces(context),
    body_limit_bytes: config.body_limit_bytes,
    most_open_answers: config.most_open_answers,
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
