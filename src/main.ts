import { join } from "node:path";
import { Registry } from "prom-client";
import { keySourceOf } from "./access/encryption/key-source.ts";
import { openKeyRing } from "./access/encryption/open-key-ring.ts";
import { noEncryption } from "./access/encryption/seal.ts";
import type { Vault } from "./access/vault.ts";
import { Activation } from "./agent-server/activation.ts";
import { DefaultAssistants } from "./agent-server/assistants/default-assistants.ts";
import { CronScheduler } from "./agent-server/crons/cron-scheduler.ts";
import { TraceOutbox } from "./agent-server/engine/index.ts";
import { type CatalogContent, GraphCatalog } from "./agent-server/graph-catalog.ts";
import type { StartHost } from "./agent-server/graph-hosts/host.ts";
import { TypeSchemaReader } from "./agent-server/graph-hosts/type-schemas/reader.ts";
import type { AppHost } from "./agent-server/index.ts";
import { Disconnects } from "./agent-server/runs/disconnects.ts";
import { Runs } from "./agent-server/runs/runs.ts";
import { checkEncryption } from "./agent-server/storage/data-check.ts";
import { ThreadRetention } from "./agent-server/threads/thread-retention.ts";
import { ThreadStates } from "./agent-server/threads/thread-states.ts";
import { UiBundles } from "./agent-server/ui/ui-bundles.ts";
import { createAccess, createCustomAuth, openVault, requireAuthentication } from "./app/compose/access.ts";
import {
  createAppHost,
  createEngine,
  createWebhookPolicy,
  createWebhookSender,
  traceStoreIn,
} from "./app/compose/engine.ts";
import { createEncryption, hostStarter, pythonProcesses } from "./app/compose/graph-hosts.ts";
import { createHttp } from "./app/compose/http.ts";
import { experimentsOptions, openData, synchronousOf } from "./app/compose/open-data.ts";
import { metricsExports } from "./app/compose/otlp.ts";
import type { DeploymentFront } from "./app/deployment-front.ts";
import { fetchAsUser } from "./app/fetch-as-user.ts";
import type { Config } from "./config/config.ts";
import { ENCRYPTION, HTTP_APP } from "./config/http.ts";
import { UI } from "./config/ui.ts";
import type { DeploymentRouter } from "./control-plane/router/deployment-router.ts";
import { createExperimentsService, type ExperimentsService } from "./experiments/worker/experiments-service.ts";
import { DEFAULT_TENANT } from "./platform/contract/caller.ts";
import { encryptDatabase } from "./platform/database/encrypted-database.ts";
import { BodyParser } from "./platform/http/body-parser.ts";
import type { App, Env } from "./platform/http/route.ts";
import { type BackgroundService, periodicService } from "./platform/lib/background-service.ts";
import type { Log } from "./platform/lib/log.ts";

export { type Listening, listen } from "./app/server.ts";

/** A service that is started but does not listen yet. */
export interface Threadmill {
  fetch(request: Request, bindings?: Env["Bindings"]): Response | Promise<Response>;
  /** Undefined for a worker, which forwards no requests. */
  front: DeploymentFront | undefined;
  router: DeploymentRouter;
  /** The routes in Hono's syntax: `:name` is a path parameter. Middleware has the method ALL. */
  routes: readonly { method: string; path: string }[];
  /** Type and location of the database, to show to users. */
  database: string;
  /** The load errors by graph. Those of the HTTP app and the UI have the keys {@link HTTP_APP} and {@link UI}. */
  loaded: Promise<Record<string, string>>;
  /** Reloads the code of the project and returns its load errors, like `loaded`. Active runs finish with the old graphs. */
  reload(content: CatalogContent & Pick<Config, "ui">): Promise<Record<string, string>>;
  /**
   * Waits for runs to finish, returns the remaining runs to the queue, then closes all parts.
   *
   * @param closeConnections called before the database is closed: requests that still wait must break off, so that clients repeat them, and
   *   not receive an error as their result
   */
  stop(closeConnections?: () => void): Promise<void>;
}

/**
 * The composition root: creates and starts all parts of the service.
 *
 * @param startHost starts the graph hosts that execute runs; the program passes one whose first host is already loading the graphs
 */
export async function startThreadmill(
  config: Config,
  log: Log,
  startHost: StartHost = hostStarter(config),
): Promise<Threadmill> {
  const keys = config.only ? undefined : keySourceOf(config);
  const { database: stored, close } = await openData(config, synchronousOf(config), log);
  const seal = keys ? await openKeyRing(stored, keys, log) : noEncryption;
  await requireAuthentication(config, stored);
  const catalog = new GraphCatalog(config);
  const python = pythonProcesses(config);
  const encryption = createEncryption(config, catalog, python, log);
  try {
    await encryption?.start();
    await checkEncryption(stored, encryption !== undefined);
  } catch (error) {
    await encryption?.stop();
    await close();
    throw error;
  }
  // Only the agent server has columns that are encrypted.
  const database = encryption ? encryptDatabase(stored, encryption) : stored;
  const default_assistants = new DefaultAssistants(database, catalog);
  const activation = new Activation({ database, default_assistants, rollout: config.rollout });
  await activation.start();
  let opening: Promise<Vault> | undefined;
  const getVault = () => (opening ??= openVault(config, stored, seal, log));
  const served = Promise.withResolvers<App>();
  const fetchAs = fetchAsUser(served.promise, config.mount_prefix);
  const experiments = createExperimentsService(experimentsOptions(config, log));
  const metrics = new Registry();
  const traces = traceStoreIn(config, experiments);
  // An instance of a deployment keeps its traces in an outbox, from which the control plane fetches them.
  const trace_outbox = config.rollout === undefined ? undefined : new TraceOutbox();
  // Traces contain inputs and outputs, and are not encrypted.
  if (encryption && traces) log.info("runs are not traced: encryption is enabled, and traces cannot be encrypted");
  const traceStore = encryption ? undefined : (trace_outbox ?? (config.only ? undefined : traces));
  const engine_services = { startHost, python, vault: getVault, fetchAs, traceStore, metrics };
  const engine = createEngine(config, database, catalog, engine_services, log);
  await engine.start();
  // A worker serves neither the HTTP app nor the UI. It starts the host of the app if a graph sends a request to the server.
  const isWorker = config.role === "worker";
  const app_host = createAppHost(config, catalog, python, log);
  if (!isWorker) app_host?.start();
  const ui_bundles = new UiBundles({ ...config, env: config.system_env, log }, isWorker ? undefined : config.ui);
  const loaded = engine.loadFailures.then((failures) => {
    catalog.failures = failures;
    return withOtherFailures(failures, isWorker ? undefined : app_host, ui_bundles);
  });
  // `serve` ends if a part fails to load. Runs that it had claimed would end with that error instead of waiting for the corrected code.
  const claimable = config.command === "serve" ? loaded : Promise.resolve({});
  // A caller may ignore `loaded`; its rejection must not end the process.
  void claimable
    .then((failures) => Object.keys(failures).length === 0 && engine.startClaiming())
    .catch(() => undefined);
  const type_schemas = new TypeSchemaReader({
    project_dir: config.project_dir,
    timeout_ms: config.schema_timeout_ms,
    cache_dir: join(config.data_dir, "type-schemas"),
    log,
  });
  const webhooks = createWebhookPolicy(config);
  const auth = createCustomAuth(config, catalog, python, log);
  if (!isWorker) void auth?.start();
  const max_pending = { per_workspace: config.max_pending_runs, per_user: config.max_pending_runs_per_user };
  const thread_ttl = config.thread_ttl.default;
  const context = { database, engine, catalog, type_schemas, webhooks, auth, thread_ttl, max_pending };
  const thread_retention = new ThreadRetention(context);
  const disconnects = new Disconnects({
    cancel: (run) => engine.cancellations.cancelIfActive(run),
    grace_ms: config.disconnect_grace_ms,
    log,
  });
  // To shorten the startup, the vault, the control plane and the HTTP interface are imported while the graph hosts load the graphs.
  const vault = await getVault();
  const { openControlPlane } = await import("./app/compose/control-plane.ts");
  const control_plane = await openControlPlane(config, { database: stored, seal, log }, traces);
  const access = await createAccess(config, stored, log);
  const crons = new CronScheduler({
    context,
    runs: new Runs(context, new ThreadStates(context)),
    missed: config.cron_missed,
    rollout: config.rollout,
    log,
  });
  const retention = traceRetention(config, experiments, log);
  const body_parser = new BodyParser();
  const webhook_sender = createWebhookSender(config, database, webhooks, { served: served.promise, body_parser }, log);
  const thread_sweeper = thread_retention.sweeper(config.thread_ttl.sweep, log);
  const agent_services = [crons, thread_sweeper, ...(webhook_sender ? [webhook_sender] : [])];
  const services = [
    access,
    ...metricsExports(config, metrics, log),
    ...(isWorker ? [] : agent_services),
    ...(config.only || isWorker ? [] : [...vault.maintenance, control_plane, retention]),
  ];
  for (const service of services) service.start();
  const { control, router } = control_plane;
  const http_services = {
    access,
    disconnects,
    experiments,
    default_assistants,
    activation,
    vault,
    control,
    router,
    trace_outbox,
    thread_retention,
    metrics,
    app_host,
    ui_bundles,
    encryption,
  };
  const { app, served: network, front } = await createHttp(config, context, { ...http_services, body_parser }, log);
  served.resolve(app);
  return {
    fetch: (request, bindings) => network.fetch(request, bindings),
    front,
    router,
    routes: app.routes,
    database: database.description,
    loaded,
    async reload(content) {
      catalog.content = content;
      ui_bundles.reload(content.ui);
      auth?.reload();
      const unencrypted = await encryption?.reload();
      // Without the module nothing can be stored. The reload after its correction renews the assistants.
      if (unencrypted === undefined) {
        await default_assistants.renew();
        await default_assistants.ensure(DEFAULT_TENANT);
      }
      const [failures] = await Promise.all([engine.reload(), app_host?.reload()]);
      catalog.failures = failures;
      const all = await withOtherFailures(failures, app_host, ui_bundles);
      return unencrypted === undefined ? all : { ...all, [ENCRYPTION]: unencrypted };
    },
    async stop(closeConnections) {
      disconnects.stop();
      ui_bundles.stop();
      const stopping = services.map((service) => service.stop());
      python.stop();
      await Promise.all([engine.stop(config.shutdown_grace_ms), type_schemas.stop(), auth?.stop(), ...stopping]);
      await Promise.all([experiments.stop(), body_parser.stop(), app_host?.stop(), encryption?.stop()]);
      await (await opening?.catch(() => undefined))?.ended();
      closeConnections?.();
      await close();
    },
  };
}

/** Adds the load errors of the HTTP app and the UI to those of the graphs. */
async function withOtherFailures(
  failures: Record<string, string>,
  app_host: AppHost | undefined,
  ui_bundles: UiBundles,
): Promise<Record<string, string>> {
  const [app, ui] = await Promise.all([app_host?.loadFailure, ui_bundles.failure]);
  return { ...failures, ...(app !== undefined && { [HTTP_APP]: app }), ...(ui !== undefined && { [UI]: ui }) };
}

/** Deletes expired traces. The first sweep runs after one interval, not at startup, because it starts a worker thread. */
const traceRetention = (config: Config, { retention }: ExperimentsService, log: Log): BackgroundService =>
  periodicService(
    config.trace_sweep_ms,
    () => retention.sweep(config.trace_retention_days * 86_400_000),
    (error) => log.error({ error }, "trace retention failed"),
  );
