import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, resolve } from "node:path";
import { readGraphEnv } from "./config/graph-env.ts";
import { type GraphSpec, readGraphs, readPrefix, readProject } from "./config/project.ts";
import { type Env, integer, list, number, oneOf } from "./config/values.ts";
import { ConfigError } from "./errors.ts";
import { isObject, type JsonObject } from "./lib/json.ts";
import { isLoopback } from "./lib/loopback.ts";

/** Everything that can be configured, read once at the start. The rest of the program never looks at the environment. */
export interface Config extends Timing {
  command: "dev" | "serve";
  /** Version of this program, from its package.json. */
  threadmill_version: string;
  /** The folder of langgraph.json; paths in it are relative to this. */
  project_dir: string;
  config_file: string;
  graphs: readonly GraphSpec[];
  /** Environment of the graph hosts: that of this process without its secrets, and what langgraph.json adds. */
  graph_env: Readonly<Record<string, string>>;
  host: string;
  port: number;
  data_dir: string;
  database_url: string | undefined;
  /** Keys for the secrets in the database, in base64; the first one encrypts. */
  encryption_keys: readonly string[];
  /** ... or a file of them, one a line. With neither, the data folder has one of its own. */
  encryption_keys_file: string | undefined;
  log_level: string;
  /** Run graphs on the serving thread, for debuggers. */
  inline: boolean;
  /** Graph hosts for runs; reads have one of their own. */
  hosts: number;
  /** Runs that one host executes at a time. */
  jobs_per_worker: number;
  /** Heap limit of a graph host. */
  host_memory_mb: number;
  api_keys: readonly string[];
  /** The OpenID provider whose JWTs are accepted. */
  oidc: { issuer: string; audience: string; allow_loopback: boolean } | undefined;
  /** Permits OAuth providers at loopback addresses, also with http, for development and tests. */
  allow_loopback_oauth: boolean;
  /** The address by which users' browsers reach this service, without a slash at its end. */
  public_url: string | undefined;
  allowed_hosts: readonly string[];
  cors_origins: readonly string[];
  mount_prefix: string;
  /** Deployments have host names of their own below this one. */
  deployments_domain: string | undefined;
  /** Config and context of the default assistants, by graph. */
  default_assistants: Readonly<Record<string, { config: JsonObject; context: JsonObject }>>;
  body_limit_bytes: number;
  /** The same for uploads of experiments, whose bodies are not held in memory. */
  upload_limit_bytes: number;
  /** Deployments that are built at a time. */
  deploy_builds: number;
  /** Answers to /ok in a row after which an instance of a deployment is ready. */
  deploy_probes: number;
  /** The same for tarballs of source. */
  source_limit_bytes: number;
}

/** Graces, leases and retention; tests shorten them. All in milliseconds. */
interface Timing {
  /** How long a worker holds a run without a heartbeat. */
  lease_ms: number;
  heartbeat_ms: number;
  /** How long a cancelled node may go on before it is given up. */
  cancel_grace_ms: number;
  /** A graph host that has not answered for this long gets no new runs. */
  host_silent_ms: number;
  /** ... and for this long is ended. */
  host_dead_ms: number;
  run_timeout_ms: number;
  shutdown_grace_ms: number;
  event_retention_ms: number;
  /** Lines of builds and instances of deployments. */
  deployment_log_retention_ms: number;
  /** Pollers look for themselves this often, in case a hint was lost. */
  poll_ms: number;
  sse_heartbeat_ms: number;
  /** How long a client that wants its run cancelled when it is gone may take to come back. */
  disconnect_grace_ms: number;
  /** How long a user may take at an OAuth provider. */
  flow_ttl_ms: number;
  /** An OAuth token that expires within this is refreshed before it is given out. */
  refresh_skew_ms: number;
  /** Asking an OAuth provider for something. */
  provider_timeout_ms: number;
  token_event_retention_ms: number;
  /** How long a process holds a deployment without a sign of life. */
  deploy_lease_ms: number;
  /** How long the instances of a revision may take to be ready, if they show no progress. */
  deploy_deadline_ms: number;
  /** How long requests in flight may go on in instances that others have replaced. */
  deploy_drain_ms: number;
  /** How long a request for a deployment waits for an instance when none is ready. */
  router_wait_ms: number;
}

/** What the command line says; it wins over the environment. */
export interface Flags {
  config?: string;
  host?: string;
  port?: string;
  data?: string;
  databaseUrl?: string;
  logLevel?: string;
  inline?: boolean;
  hosts?: string;
}

/**
 * @throws ConfigError with one sentence that names file, field and remedy
 */
export function readConfig(command: Config["command"], flags: Flags, env: Env): Config {
  const config_file = resolve(flags.config ?? "langgraph.json");
  const project = readProject(config_file);
  const project_dir = dirname(config_file);
  if (project.auth) {
    throw new ConfigError(
      `${config_file}: the field "auth" names a module that this version does not run, so everybody would get in: remove the field and use API_KEYS.`,
    );
  }
  const storage = readStorageConfig(flags, env);
  return Object.freeze({
    command,
    threadmill_version: ownVersion(),
    project_dir,
    config_file,
    graphs: readGraphs(project.graphs, project_dir, config_file),
    graph_env: readGraphEnv(project.env, { project_dir, config_file, database_url: storage.database_url }, env),
    host: flags.host ?? "127.0.0.1",
    port: integer("--port (or PORT)", flags.port ?? env.PORT, 2024, 0, 65_535),
    ...storage,
    inline: flags.inline ?? false,
    hosts: integer("--hosts", flags.hosts ?? env.THREADMILL_HOSTS, Math.max(1, availableParallelism() - 1), 1, 256),
    jobs_per_worker: integer("N_JOBS_PER_WORKER", env.N_JOBS_PER_WORKER, 50, 1, 10_000),
    host_memory_mb: integer("THREADMILL_HOST_MEMORY_MB", env.THREADMILL_HOST_MEMORY_MB, 2048, 64, 1_048_576),
    api_keys: list(env.API_KEYS),
    oidc: readOidc(env),
    allow_loopback_oauth: mayUseLoopback(env),
    public_url: readPublicUrl(env.THREADMILL_PUBLIC_URL),
    allowed_hosts: list(env.ALLOWED_HOSTS),
    cors_origins: list(env.CORS_ALLOW_ORIGINS ?? "*"),
    mount_prefix: readPrefix(
      env.MOUNT_PREFIX ?? (isObject(project.http) ? project.http.mount_prefix : undefined),
      config_file,
    ),
    deployments_domain: readDomain(env.THREADMILL_DEPLOYMENTS_DOMAIN),
    default_assistants: readDefaultAssistants(env.LANGGRAPH_CONFIG),
    body_limit_bytes: integer(
      "HTTP_MAX_REQUEST_BODY_BYTES",
      env.HTTP_MAX_REQUEST_BODY_BYTES,
      50_000_000,
      1024,
      2 ** 31,
    ),
    upload_limit_bytes: integer(
      "THREADMILL_MAX_UPLOAD_BYTES",
      env.THREADMILL_MAX_UPLOAD_BYTES,
      200_000_000,
      1024,
      2 ** 31,
    ),
    source_limit_bytes: integer(
      "THREADMILL_MAX_SOURCE_BYTES",
      env.THREADMILL_MAX_SOURCE_BYTES,
      209_715_200,
      1024,
      2 ** 31,
    ),
    deploy_builds: integer("THREADMILL_DEPLOY_BUILDS", env.THREADMILL_DEPLOY_BUILDS, 1, 1, 64),
    deploy_probes: integer("THREADMILL_DEPLOY_PROBES", env.THREADMILL_DEPLOY_PROBES, 3, 1, 100),
    ...readTiming(env),
  });
}

export type StorageConfig = Pick<
  Config,
  "data_dir" | "database_url" | "encryption_keys" | "encryption_keys_file" | "log_level"
>;

/** What commands on the database need to know; they have no use for a langgraph.json. */
export function readStorageConfig(flags: Flags, env: Env): StorageConfig {
  return {
    data_dir: resolve(flags.data || env.THREADMILL_DATA || ".threadmill"),
    database_url: readDatabaseUrl(flags.databaseUrl ?? env.DATABASE_URL ?? env.POSTGRES_URI),
    encryption_keys: list(env.THREADMILL_ENCRYPTION_KEYS),
    encryption_keys_file: env.THREADMILL_ENCRYPTION_KEYS_FILE
      ? resolve(env.THREADMILL_ENCRYPTION_KEYS_FILE)
      : undefined,
    log_level: oneOf(
      "--log-level (or LOG_LEVEL)",
      (flags.logLevel ?? env.LOG_LEVEL)?.toLowerCase(),
      ["debug", "info", "warn", "error", "silent"],
      "info",
    ),
  };
}

const DAY_MS = 86_400_000;

function readTiming(env: Env): Timing {
  const ms = (name: string, fallback: number) => integer(name, env[name], fallback, 1, 2 ** 31 - 1);
  const seconds = (name: string, fallback: number) => Math.round(number(name, env[name], fallback) * 1000);
  const lease_ms = ms("THREADMILL_LEASE_MS", 4_000);
  const heartbeat_ms = ms("THREADMILL_HEARTBEAT_MS", 1_000);
  if (lease_ms < 2 * heartbeat_ms) {
    throw new ConfigError(
      `THREADMILL_LEASE_MS (${lease_ms}) must be at least twice THREADMILL_HEARTBEAT_MS (${heartbeat_ms}).`,
    );
  }
  return {
    lease_ms,
    heartbeat_ms,
    cancel_grace_ms: ms("THREADMILL_CANCEL_GRACE_MS", 5_000),
    host_silent_ms: ms("THREADMILL_HOST_SILENT_MS", 1_000),
    host_dead_ms: ms("THREADMILL_HOST_DEAD_MS", 60_000),
    run_timeout_ms: seconds("BG_JOB_TIMEOUT_SECS", 3_600),
    shutdown_grace_ms: seconds("BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS", 20),
    event_retention_ms: seconds("RESUMABLE_STREAM_TTL_SECONDS", 3_600),
    deployment_log_retention_ms: seconds("THREADMILL_DEPLOYMENT_LOG_TTL_SECONDS", 604_800),
    poll_ms: ms("THREADMILL_POLL_MS", 200),
    sse_heartbeat_ms: ms("THREADMILL_SSE_HEARTBEAT_MS", 5_000),
    disconnect_grace_ms: ms("THREADMILL_DISCONNECT_GRACE_MS", 2_000),
    flow_ttl_ms: ms("THREADMILL_OAUTH_FLOW_MS", 600_000),
    refresh_skew_ms: ms("THREADMILL_OAUTH_REFRESH_SKEW_MS", 60_000),
    provider_timeout_ms: ms("THREADMILL_OAUTH_TIMEOUT_MS", 10_000),
    deploy_lease_ms: ms("THREADMILL_DEPLOY_LEASE_MS", 15_000),
    deploy_deadline_ms: seconds("THREADMILL_DEPLOY_DEADLINE_SECS", 300),
    deploy_drain_ms: seconds("THREADMILL_DEPLOY_DRAIN_SECS", 300),
    router_wait_ms: ms("THREADMILL_ROUTER_WAIT_MS", 5_000),
    token_event_retention_ms:
      DAY_MS * integer("THREADMILL_TOKEN_EVENT_DAYS", env.THREADMILL_TOKEN_EVENT_DAYS, 90, 1, 36_500),
  };
}

const mayUseLoopback = (env: Env): boolean => env.THREADMILL_ALLOW_LOOPBACK_OAUTH === "1";

function readOidc(env: Env): Config["oidc"] {
  const issuer = env.THREADMILL_OIDC_ISSUER;
  const audience = env.THREADMILL_OIDC_AUDIENCE;
  if (!issuer && !audience) return undefined;
  if (!issuer || !audience) {
    throw new ConfigError("THREADMILL_OIDC_ISSUER and THREADMILL_OIDC_AUDIENCE belong together: set both, or none.");
  }
  const allow_loopback = mayUseLoopback(env);
  const url = URL.parse(issuer);
  const isHttp = url?.protocol === "http:" && allow_loopback && isLoopback(url.hostname);
  if (!url || (url.protocol !== "https:" && !isHttp) || url.search || url.hash) {
    throw new ConfigError(
      `THREADMILL_OIDC_ISSUER must be the address of an OpenID provider, as it stands in the "iss" of its tokens and with https, but is "${issuer}".`,
    );
  }
  return { issuer, audience, allow_loopback };
}

function readDefaultAssistants(text: string | undefined): Config["default_assistants"] {
  if (!text) return {};
  try {
    const byGraph = JSON.parse(text) as Record<string, JsonObject>;
    return Object.fromEntries(
      Object.entries(byGraph).map(([graph_id, { context = {}, ...config }]) => [
        graph_id,
        { config, context: context as JsonObject },
      ]),
    );
  } catch (error) {
    throw new ConfigError(
      `LANGGRAPH_CONFIG must be JSON of the form {"graph": {"configurable": {}}}: ${(error as Error).message}.`,
    );
  }
}

function readPublicUrl(text: string | undefined): string | undefined {
  if (!text) return undefined;
  const url = URL.parse(text);
  if (url && /^https?:$/.test(url.protocol) && !url.search && !url.hash && !url.username)
    return text.replace(/\/+$/, "");
  throw new ConfigError(
    `THREADMILL_PUBLIC_URL must be the address of this service as browsers reach it, like https://agents.example.com, but is "${text}".`,
  );
}

function readDomain(text: string | undefined): string | undefined {
  const domain = text?.toLowerCase();
  if (!domain || /^[a-z0-9-]+(\.[a-z0-9-]+)*$/.test(domain)) return domain || undefined;
  throw new ConfigError(
    `THREADMILL_DEPLOYMENTS_DOMAIN must be a host name like agents.example.com, without scheme and port, but is "${text}".`,
  );
}

function readDatabaseUrl(url: string | undefined): string | undefined {
  if (!url) return undefined;
  if (/^postgres(ql)?:\/\//.test(url) && URL.canParse(url)) return url;
  throw new ConfigError("--database-url (or DATABASE_URL) must look like postgres://user:password@host:5432/database.");
}

function ownVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as { version: string };
  return manifest.version;
}
