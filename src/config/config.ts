import { existsSync, readFileSync } from "node:fs";
import { delimiter, dirname, resolve } from "node:path";
import { ConfigError } from "../platform/errors.ts";
import type { CorsSettings } from "../platform/lib/cors.ts";
import type { SelectHeaders } from "../platform/lib/header-selection.ts";
import { isObject, type JsonObject } from "../platform/lib/json/json.ts";
import { isLoopback } from "../platform/lib/safe-fetch/addresses.ts";
import { readAuth, readEncryption, readHeaders, readHttpApp } from "./http.ts";
import {
  fieldsWithoutEffect,
  type GraphSpec,
  IMAGE_FIELDS,
  type PythonProject,
  type RouteGroup,
  readCors,
  readDisabled,
  readEnvField,
  readGraphs,
  readPrefix,
  readProject,
  readPython,
} from "./project.ts";
import { deploymentSettings } from "./settings/deployments.ts";
import { limitSettings } from "./settings/limits.ts";
import { type OidcScopes, oauthSettings } from "./settings/oauth.ts";
import { runSettings } from "./settings/runs.ts";
import { requireRole, serverSettings } from "./settings/server.ts";
import type { Env } from "./settings/setting.ts";
import { changedSettings, type Flags, readSection, unknownVariables, type ValuesOf } from "./settings/settings.ts";
import { storageSettings } from "./settings/storage.ts";
import { tracingSettings } from "./settings/tracing.ts";
import { readStore } from "./store.ts";
import { readThreadTtl } from "./ttl.ts";
import { readUi } from "./ui.ts";
import { readWebhooks } from "./webhooks.ts";

export type { Flags } from "./settings/settings.ts";

/** Values of the settings, except those that {@link Config} contains in a different form. */
type SettingValues = ValuesOf<
  Omit<typeof serverSettings, "cors_allow_origins" | "studio" | "mount_prefix"> &
    typeof storageSettings &
    typeof limitSettings &
    Omit<typeof runSettings, "default_assistants_json" | "python_hosts"> &
    Omit<typeof tracingSettings, "tracing_rate"> &
    Omit<typeof oauthSettings, "oidc_issuer" | "oidc_audience" | "oidc_scopes"> &
    typeof deploymentSettings
>;

/** The default fraction of runs that are traced, by command. Tracing all runs costs 30 % of the throughput of runs with one node. */
const TRACING_RATE = { dev: 1, serve: 0.1 };

/** Each is a process of 70 MB and more. */
const MAX_PYTHON_HOSTS = 4;

/** Intervals in milliseconds, and a limit, that are not configurable. Tests use smaller ones. */
const INTERVALS = {
  /** Time without a response after which a graph host receives no new runs. */
  host_silent_ms: 1_000,
  /** Interval at which waiting processes poll the database, in case a notification was lost. */
  poll_ms: 200,
  /** Interval of keep-alive comments in a stream without events. */
  sse_heartbeat_ms: 5_000,
  /** An OAuth token that expires within this time is refreshed before it is returned. */
  refresh_skew_ms: 60_000,
  /** Maximum time that a request waits for a ready instance of its deployment. */
  router_wait_ms: 5_000,
  /** Interval at which expired traces are deleted. */
  trace_sweep_ms: 3_600_000,
  /** Time limit of a request to a webhook. */
  webhook_timeout_ms: 10_000,
  /** Delay before the first retry of a webhook. */
  webhook_retry_ms: 3_000,
  /** Time limit of a handler of the authentication module. */
  auth_timeout_ms: 10_000,
  /** If Postgres has the extension pgvector, larger workspaces are searched there: 175,000 vectors of 384 dimensions. */
  max_loaded_vector_bytes: 2 ** 28,
};

export type Intervals = typeof INTERVALS;

/** The configuration of a service, read at startup. `dev` reads it again when a source file changes. */
export interface Config extends SettingValues, Intervals {
  command: "dev" | "serve";
  threadmill_version: string;
  /** The folder of langgraph.json, to which its paths are relative. */
  project_dir: string;
  config_file: string;
  graphs: readonly GraphSpec[];
  python_project: PythonProject;
  /** Number of graph hosts for runs of Python graphs. */
  python_hosts: number;
  /** Environment of the graph hosts: the variables of this process except its secrets, and the variables in langgraph.json. */
  graph_env: Readonly<Record<string, string>>;
  /** Paths of langgraph.json fields that have no effect. `serve` does not start if there are any. */
  ignored_fields: readonly string[];
  /** See unknownVariables(). */
  unknown_variables: readonly string[];
  /** See changedSettings(). */
  changed_settings: Readonly<Record<string, string>>;
  /** The OpenID provider whose JWTs are accepted. */
  oidc: ReturnType<typeof readOidc>;
  cors: CorsSettings;
  mount_prefix: string;
  /** The fraction of the runs that are traced. */
  tracing_rate: number;
  disabled_routes: ReadonlySet<RouteGroup>;
  /** Request headers that become configurable values of new runs, and request headers that are logged. Undefined if none are selected. */
  configurable_headers: SelectHeaders | undefined;
  logging_headers: SelectHeaders | undefined;
  store: ReturnType<typeof readStore>;
  thread_ttl: ReturnType<typeof readThreadTtl>;
  /** The HTTP app of the project; undefined if it has none. */
  http_app: ReturnType<typeof readHttpApp>;
  /** The React components of the project; undefined if it has none. */
  ui: ReturnType<typeof readUi>;
  /** Config and context of the default assistants, by graph. */
  default_assistants: Readonly<Record<string, { config: JsonObject; context: JsonObject }>>;
  webhooks: ReturnType<typeof readWebhooks>;
  /** The authentication module of the project; undefined if there is none. */
  auth: ReturnType<typeof readAuth>;
  /** The encryption module of the project; undefined if there is none. */
  encryption: ReturnType<typeof readEncryption>;
  /** Environment of programs that the service starts. */
  system_env: Readonly<Record<string, string>>;
}

/**
 * @param intervals override the defaults in tests
 * @throws ConfigError
 */
export function readConfig(
  command: Config["command"],
  flags: Flags,
  env: Env,
  intervals: Partial<Intervals> = {},
): Config {
  const config_file = resolve(flags.config ?? "langgraph.json");
  const project = readProject(config_file);
  requireNodeVersion(project, config_file);
  const project_dir = dirname(config_file);
  const deployments = readSection(deploymentSettings, flags, env);
  const auth = readAuth(project.auth, project_dir, config_file);
  const ignored_fields = fieldsWithoutEffect(project);
  const refused = ignored_fields.filter((field) => !IMAGE_FIELDS.includes(field));
  if (command === "serve" && refused.length > 0) {
    throw new ConfigError(
      `${config_file}: ${refused.join(", ")} would have no effect. Remove ${refused.length === 1 ? "this field" : "these fields"}, or use "threadmill dev", which prints a warning instead.`,
    );
  }
  const { cors_allow_origins, studio, mount_prefix, ...server } = readSection(serverSettings, flags, env);
  const { default_assistants_json, ...runs } = readSection(runSettings, flags, env);
  const { oidc_issuer, oidc_audience, oidc_scopes, ...oauth } = readSection(oauthSettings, flags, env);
  const storage = readSection(storageSettings, flags, env);
  if (storage.database_pooler_url && !storage.database_url)
    throw new ConfigError(
      "THREADMILL_DATABASE_POOLER_URL requires DATABASE_URL to be set as well. DATABASE_URL must refer to Postgres itself, not to PgBouncer.",
    );
  const tracing = readSection(tracingSettings, flags, env);
  requireRole(command, server, { ...storage, ...deployments });
  // The process and its worker processes have roles, and share the data folder.
  const shared = server.workers > 0 ? { role: "api" as const, share_data: true } : {};
  // The socket is that of the service.
  if (server.worker_process) server.listen_fd = undefined;
  const graph_env = readGraphEnv(project.env, { project_dir, config_file, database_url: storage.database_url }, env);
  const http = isObject(project.http) ? project.http : {};
  if (runs.lease_ms < 2 * runs.heartbeat_ms)
    throw new ConfigError(
      `THREADMILL_LEASE (${runs.lease_ms} ms) must be at least twice THREADMILL_HEARTBEAT (${runs.heartbeat_ms} ms).`,
    );
  return Object.freeze({
    command,
    threadmill_version: ownVersion(),
    project_dir,
    config_file,
    graphs: readGraphs(project.graphs, project_dir, config_file),
    python_project: readPython(project, project_dir, config_file),
    graph_env,
    ignored_fields,
    unknown_variables: unknownVariables(env),
    changed_settings: changedSettings(flags, env),
    ...INTERVALS,
    ...intervals,
    ...server,
    ...storage,
    ...runs,
    python_hosts: runs.python_hosts ?? (command === "dev" ? 1 : Math.min(MAX_PYTHON_HOSTS, runs.hosts)),
    ...tracing,
    tracing_rate: tracing.tracing_rate ?? TRACING_RATE[command],
    ...oauth,
    ...deployments,
    ...readSection(limitSettings, flags, env),
    ...shared,
    // A worker serves no routes of deployments, so it does not manage them either.
    reconciles: deployments.reconciles && server.role !== "worker",
    oidc: readOidc(oidc_issuer, oidc_audience, oidc_scopes, oauth.allow_loopback_oauth),
    cors: readCors(http.cors, config_file, cors_allow_origins, studio),
    disabled_routes: readDisabled(http, config_file),
    configurable_headers: readHeaders(http, "configurable_headers", config_file),
    logging_headers: readHeaders(http, "logging_headers", config_file),
    http_app: readHttpApp(http, project_dir, config_file),
    ui: readUi(project.ui, project.ui_config, project_dir, config_file),
    store: readStore(project.store, project_dir, config_file),
    thread_ttl: readThreadTtl(project.checkpointer, config_file),
    // The router serves an instance of a deployment at the path of the deployment, and forwards requests without it.
    mount_prefix: deployments.rollout === undefined ? readPrefix(mount_prefix ?? http.mount_prefix, config_file) : "",
    default_assistants: parseDefaultAssistants(graph_env.LANGGRAPH_CONFIG ?? default_assistants_json),
    auth,
    encryption: readEncryption(project.encryption, project_dir, config_file),
    webhooks: readWebhooks(project.webhooks, http.disable_webhooks, config_file, graph_env),
    system_env: readSystemEnv(env),
  });
}

export type StorageConfig = ValuesOf<typeof storageSettings> & Pick<Config, "log_level">;

/** Settings of the commands that access only the database, such as `migrate`. These commands read no langgraph.json. */
export function readStorageConfig(flags: Flags, env: Env): StorageConfig {
  const { log_level } = serverSettings;
  return { ...readSection(storageSettings, flags, env), ...readSection({ log_level }, flags, env) };
}

/** Settings of `threadmill listen`. */
export const readListenerConfig = (flags: Flags, env: Env) => ({
  ...readStorageConfig(flags, env),
  ...readSection(deploymentSettings, flags, env),
});

function readOidc(issuer = "", audience = "", scopes: OidcScopes, allow_loopback: boolean) {
  if (!issuer && !audience) return undefined;
  if (!issuer || !audience)
    throw new ConfigError("THREADMILL_OIDC_ISSUER and THREADMILL_OIDC_AUDIENCE must be set together.");
  const url = URL.parse(issuer);
  const isLocalHttp = url?.protocol === "http:" && allow_loopback && isLoopback(url.hostname);
  if (!url || (url.protocol !== "https:" && !isLocalHttp) || url.search || url.hash) {
    throw new ConfigError(
      `THREADMILL_OIDC_ISSUER must be the https URL of an OpenID provider, without a query or fragment, but is "${issuer}". Set it to the "iss" claim of the provider's tokens.`,
    );
  }
  return { issuer, audience, allow_loopback, scopes };
}

function parseDefaultAssistants(text: string | undefined): Config["default_assistants"] {
  if (!text) return {};
  try {
    const byGraph = JSON.parse(text) as Record<string, JsonObject>;
    const entries = Object.entries(byGraph).map(([graph_id, { context = {}, ...config }]) => {
      return [graph_id, { config, context: context as JsonObject }];
    });
    return Object.fromEntries(entries);
  } catch (error) {
    throw new ConfigError(
      `LANGGRAPH_CONFIG must be JSON of the form {"graph": {"configurable": {}}}: ${(error as Error).message}.`,
    );
  }
}

/** Version of the program. */
export const ownVersion = (): string =>
  JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version;

/** @throws ConfigError if `node_version` of langgraph.json is later than the version that runs this program */
function requireNodeVersion({ node_version: version = null }: JsonObject, file: string): void {
  if (version === null) return;
  if (!/^\d+$/.test(String(version)))
    throw new ConfigError(
      `${file}: node_version must be a major version such as "24", but is ${JSON.stringify(version)}.`,
    );
  if (Number(version) > Number.parseInt(process.versions.node, 10))
    throw new ConfigError(
      `${file}: node_version is ${version}, but Threadmill is running on Node.js ${process.versions.node}. Start Threadmill with Node.js ${version} or later.`,
    );
}

/** Never passed to graphs, even if langgraph.json names them. */
const ALWAYS_WITHHELD = ["THREADMILL_ENCRYPTION_KEYS", "THREADMILL_ENCRYPTION_KEYS_FILE"];
/** Secrets of this process. Graphs do not inherit them, because the author of a graph is not always the operator. */
const WITHHELD = [
  ...["API_KEYS", "THREADMILL_DATABASE_URL", "THREADMILL_DATABASE_POOLER_URL", "THREADMILL_WEBHOOK_SECRET"],
  ...ALWAYS_WITHHELD,
];
/**
 * Not inherited by graphs if the value is the URL of the service's own database. Another value may be the URL of a database that
 * graphs use.
 */
const DATABASES = ["DATABASE_URL", "POSTGRES_URI"];

/** @throws ConfigError for an invalid `field`, which is `env` of langgraph.json */
export function readGraphEnv(
  field: unknown,
  project: { project_dir: string; config_file: string; database_url: string | undefined },
  env: Env,
): Record<string, string> {
  const tsconfig = resolve(project.project_dir, "tsconfig.json");
  const own_database = DATABASES.filter((name) => env[name] === project.database_url);
  return {
    // tsx reads path aliases from this file. By default, it uses the tsconfig.json in the working directory of the process.
    ...(existsSync(tsconfig) && { TSX_TSCONFIG_PATH: tsconfig }),
    ...without([...WITHHELD, ...own_database], env as Record<string, string>),
    ...without(ALWAYS_WITHHELD, readEnvField(field, project.project_dir, project.config_file, env)),
  };
}

const without = (names: string[], env: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)));

/** Variables that are passed to other programs: language, time zone, temporary files and trusted certificates. */
const PASSED_ON = ["LANG", "LC_ALL", "TZ", "TMPDIR", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/** Returns the environment of programs that the service starts. In PATH, the folder of this process's Node.js comes first. */
function readSystemEnv(env: Env): Record<string, string> {
  const found = PASSED_ON.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name] as string]]));
  return { ...Object.fromEntries(found), PATH: [dirname(process.execPath), env.PATH ?? ""].join(delimiter) };
}
