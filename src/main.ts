import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Assistants } from "./agents/assistants.ts";
import { Cancellations } from "./agents/cancellations.ts";
import type { AgentContext } from "./agents/context.ts";
import { DefaultAssistants } from "./agents/default-assistants.ts";
import { Disconnects } from "./agents/disconnects.ts";
import { GraphCatalog } from "./agents/graph-catalog.ts";
import { Runs } from "./agents/runs.ts";
import { ThreadStates } from "./agents/thread-states.ts";
import { Threads } from "./agents/threads.ts";
import type { Config, StorageConfig } from "./config.ts";
import { DEFAULT_TENANT } from "./contract/caller.ts";
import { type Control, createControl } from "./control/control.ts";
import { DeploymentRouter } from "./control/router/deployment-router.ts";
import { Engine } from "./engine/engine.ts";
import { ConfigError } from "./errors.ts";
import { type ExperimentsService, experimentThreads, type ThreadSetup } from "./experiments/threads.ts";
import { inlineHosts } from "./graphs/hosts/inline.ts";
import { threadHosts } from "./graphs/hosts/thread.ts";
import type { DeploymentFront } from "./http/deployment-front.ts";
import type { App } from "./http/route.ts";
import { createHttpServer } from "./http/server.ts";
import { realWait, systemClock } from "./lib/clock.ts";
import type { Log } from "./lib/log.ts";
import { isLoopback } from "./lib/loopback.ts";
import { createSafeFetch } from "./lib/safe-fetch.ts";
import type { Database } from "./storage/database.ts";
import { lockFolder } from "./storage/folder-lock.ts";
import { migrate } from "./storage/migrate.ts";
import { ping } from "./storage/ping.ts";
import { openPostgres } from "./storage/postgres.ts";
import { openSqlite } from "./storage/sqlite.ts";
import { hasApiKeys } from "./storage/vault/api-keys.ts";
import { Access } from "./vault/access.ts";
import { ApiKeys } from "./vault/api-keys.ts";
import type { VaultContext } from "./vault/context.ts";
import { keySourceOf } from "./vault/key-source.ts";
import { OidcIssuer } from "./vault/oidc-issuer.ts";
import { openKeyRing } from "./vault/open-key-ring.ts";
import type { Seal } from "./vault/seal.ts";
import { createVault, type Vault } from "./vault/vault.ts";
import { Workspaces } from "./vault/workspaces.ts";

/** What clients compare to know which features of the API they may use. */
const API_LEVEL = "0.16.0";

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

/** The service without a socket. */
export interface Threadmill {
  /** Answers requests. */
  fetch(request: Request): Response | Promise<Response>;
  /** Takes the requests for deployments, which need a socket. */
  front: DeploymentFront | undefined;
  /** Sends the requests of deployments to their instances. */
  router: DeploymentRouter;
  /** What is served, as Hono has it: `:name` stands for a part of the path, and method ALL is what stands before the routes. */
  routes: readonly { method: string; path: string }[];
  /** For people: which database it uses. */
  database: string;
  /** Reasons by graph, for graphs that could not be loaded. */
  loaded: Promise<Record<string, string>>;
  /** Loads the graphs anew; what runs goes on with the old ones. */
  reload(changed: Pick<Config, "graphs" | "graph_env">): Promise<Record<string, string>>;
  /** Lets runs end or hands them back, then closes everything. */
  stop(): Promise<void>;
}

/** Wires everything together and starts it. This is the only place that knows all parts. */
export async function startThreadmill(config: Config, log: Log): Promise<Threadmill> {
  const unlock = config.database_url ? () => undefined : lockFolder(config.data_dir);
  const keys = keySourceOf(config);
  const database = openDatabase(config, synchronousOf(config), log);
  await migrate(database, "agents");
  const seal = await openKeyRing(database, keys, log);
  await refuseToBeOpen(config, database);
  const catalog = new GraphCatalog(config.graphs, config.graph_env);
  const defaults = new DefaultAssistants(database, catalog, config.default_assistants);
  await defaults.renew();
  await defaults.meet(DEFAULT_TENANT);
  const engine = createEngine(config, database, catalog, log);
  await engine.start();
  const loaded = engine.loadFailures.then((failures) => {
    catalog.failures = failures;
    return failures;
  });
  // Nobody has to ask how the loading went.
  loaded.catch(() => undefined);
  const context = { database, engine, catalog };
  const cancellations = new Cancellations(context);
  const disconnects = new Disconnects({
    cancel: (run) => cancellations.cancelIfActive(run),
    grace_ms: config.disconnect_grace_ms,
    log,
  });
  const experiments = experimentThreads({ database: experimentsDatabase(config), log_level: config.log_level });
  const vault = createVault(vaultContext(config, database, seal, log));
  const control = createControl({ database, seal, log, settings: config });
  const maintenance = [...vault.maintenance, ...control.maintenance];
  for (const service of maintenance) service.start();
  const router = new DeploymentRouter({ database, seal, clock: systemClock, wait: realWait, log, settings: config });
  router.start();
  const { app, front } = await createHttp(
    config,
    context,
    { cancellations, disconnects, experiments, default_assistants: defaults, vault, control },
    router,
    log,
  );
  return {
    fetch: (request) => app.fetch(request),
    front,
    router,
    routes: app.routes,
    database: database.description,
    loaded,
    async reload({ graphs, graph_env }) {
      catalog.graphs = graphs;
      catalog.env = graph_env;
      await defaults.renew();
      await defaults.meet(DEFAULT_TENANT);
      catalog.failures = await engine.reload();
      return catalog.failures;
    },
    async stop() {
      disconnects.stop();
      const quiet = maintenance.map((service) => service.stop());
      await Promise.all([engine.stop(config.shutdown_grace_ms), ...quiet]);
      await Promise.all([experiments.stop(), router.stop()]);
      await database.close();
      unlock();
    },
  };
}

/** The service on its address. */
export interface Listening {
  url: string;
  /** Takes no more requests, stops the service, then drops the connections that are left. */
  stop(): Promise<void>;
}

export async function listen(config: Config, service: Threadmill): Promise<Listening> {
  const server = createHttpServer(service);
  server.listen(config.port, config.host);
  await once(server, "listening");
  return {
    url: urlOf(config, server),
    async stop() {
      const closed = once(server, "close");
      server.close();
      await service.stop();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Opens the database of one part; the schema is not looked at. */
export function openDatabase(
  config: StorageConfig,
  synchronous: "full" | "normal",
  log: Log,
  part: "agents" | "experiments" = "agents",
): Database {
  if (config.database_url) return openPostgres({ url: config.database_url, log });
  return openSqlite({ file: fileOf(config, part), synchronous, clock: systemClock });
}

/** Experiments have a file of their own, so that an upload never holds up a run. On Postgres all is one database. */
const fileOf = ({ data_dir }: StorageConfig, part: "agents" | "experiments"): string =>
  join(data_dir, part === "agents" ? "threadmill.db" : "experiments.db");

function createEngine(config: Config, database: Database, catalog: GraphCatalog, log: Log): Engine {
  const startHost = config.inline ? inlineHosts : threadHosts(config.host_memory_mb);
  const setup = () => ({ graphs: catalog.graphs, env: catalog.env, project_dir: config.project_dir });
  return new Engine({ settings: config, database, startHost, setup, log });
}

const experimentsDatabase = (config: StorageConfig & Pick<Config, "command">): ThreadSetup["database"] =>
  config.database_url
    ? { url: config.database_url }
    : { file: fileOf(config, "experiments"), synchronous: synchronousOf(config) };

/** What is promised of a commit: `serve` survives a power cut, `dev` the death of the process. */
const synchronousOf = ({ command }: Pick<Config, "command">) => (command === "serve" ? "full" : "normal");

async function createHttp(
  config: Config,
  context: AgentContext,
  parts: {
    cancellations: Cancellations;
    disconnects: Disconnects;
    experiments: ExperimentsService;
    default_assistants: DefaultAssistants;
    vault: Vault;
    control: Control;
  },
  router: DeploymentRouter,
  log: Log,
): Promise<{ app: App; front: DeploymentFront }> {
  // Loaded while the graph hosts load the graphs on another core: 60 ms of the start.
  const { createApp } = await import("./http/app.ts");
  const { DeploymentFront } = await import("./http/deployment-front.ts");
  const states = new ThreadStates(context);
  const shared = {
    prefix: config.mount_prefix,
    access: accessTo(config, context.database, log),
    cors_origins: config.cors_origins,
    allowed_hosts: isLoopback(config.host) ? config.allowed_hosts : undefined,
    public_url: config.public_url,
    log,
  };
  const { deployments_domain } = config;
  const front = new DeploymentFront({ ...shared, router, deployments_domain, is_loopback: isLoopback(config.host) });
  const app = createApp({
    ...shared,
    assistants: new Assistants(context),
    threads: new Threads(context, states),
    states,
    runs: new Runs(context, states),
    ...parts,
    heartbeat_ms: config.sse_heartbeat_ms,
    keys: new ApiKeys(context),
    workspaces: new Workspaces(context),
    body_limit_bytes: config.body_limit_bytes,
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
    checkDatabase: () => ping(context.database),
  });
  return { app, front };
}

/** Of an answer of an OAuth provider; the largest are discovery documents, of some KB. */
const MOST_PROVIDER_BYTES = 1_000_000;

function vaultContext(config: Config, database: Database, seal: Seal, log: Log): VaultContext {
  const fetch_rules = { allow_loopback: config.allow_loopback_oauth };
  const limits = { timeout_ms: config.provider_timeout_ms, max_bytes: MOST_PROVIDER_BYTES };
  const fetch = createSafeFetch(fetch_rules, limits);
  return { database, seal, fetch, fetch_rules, clock: systemClock, log, settings: config };
}

const accessTo = (config: Config, database: Database, log: Log): Access =>
  new Access({
    database,
    log,
    api_keys: config.api_keys,
    issuer: config.oidc && new OidcIssuer(config.oidc),
    is_loopback: isLoopback(config.host),
  });

/** On an address that others can reach, nobody is let in without a key: there has to be one, or a way to know people. */
async function refuseToBeOpen({ command, host, api_keys, oidc }: Config, database: Database): Promise<void> {
  if (isLoopback(host) || api_keys.length > 0 || oidc || (await hasApiKeys(database.read))) return;
  throw new ConfigError(
    `${command} would be open to everybody on ${host}: make a key with "threadmill keys create", set API_KEYS to one or more keys (comma-separated), or bind to 127.0.0.1 with --host.`,
  );
}

function urlOf(config: Config, server: Server): string {
  const { port } = server.address() as AddressInfo;
  const host = config.host.includes(":") ? `[${config.host}]` : config.host;
  return `http://${host}:${port}${config.mount_prefix}`;
}
