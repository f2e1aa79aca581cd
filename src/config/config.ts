import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, resolve } from "node:path";
import { ConfigError } from "../platform/errors.ts";
import type { CorsSettings } from "../platform/lib/cors.ts";
import { isObject, type JsonObject } from "../platform/lib/json/json.ts";
import { readCors } from "./cors.ts";
import { readDeployUser } from "./deploy-user.ts";
import { type DockerPlace, readDocker } from "./docker.ts";
import { readGraphEnv } from "./graph-env.ts";
import { mayUseLoopback, type Oidc, readOidc } from "./oidc.ts";
import { type GraphSpec, readGraphs, readPrefix, readProject } from "./project.ts";
import { fieldsWithoutEffect } from "./project-fields.ts";
import { readSystemEnv } from "./system-env.ts";
import { readTiming, type Timing } from "./timing.ts";
import { type Env, integer, list, oneOf } from "./values.ts";

/** Everything that can be configured, read once at the start. The rest of the program never looks at the environment. */
export interface Config extends Timing, DockerPlace {
  command: "dev" | "serve";
  /** Version of this program, from its package.json. */
  threadmill_version: string;
  /** The folder of langgraph.json; paths in it are relative to this. */
  project_dir: string;
  config_file: string;
  graphs: readonly GraphSpec[];
  /** Environment of the graph hosts: that of this process without its secrets, and what langgraph.json adds. */
  graph_env: Readonly<Record<string, string>>;
  /** Paths of fields of langgraph.json that have no effect. Always empty with `serve`, which refuses them. */
  ignored_fields: readonly string[];
  host: string;
  port: number;
  /** A socket that listens already, inherited from whoever has started this; instead of host and port. */
  listen_fd: number | undefined;
  data_dir: string;
  database_url: string | undefined;
  /** Other processes of this machine may work on the same data folder, as long as all say so. */
  share_data: boolean;
  /** Set when nothing but the agent server is to be served. */
  only: "agents" | undefined;
  /** The roll-out of a deployment that this is an instance of: it stands by until that one is to execute runs. */
  rollout: number | undefined;
  /** Keys for the secrets in the database, in base64; the first one encrypts. */
  encryption_keys: readonly string[];
  /** ... or a file of them, one a line. With neither, the data folder has one of its own. */
  encryption_keys_file: string | undefined;
  log_level: string;
  /** Run graphs on the serving thread, for debuggers. */
  inline: boolean;
  /** In an instance of a deployment: the file that its control plane touches as long as it is there. */
  control_plane_file: string | undefined;
  /** Graph hosts for runs; reads have one of their own. */
  hosts: number;
  /** Runs that one host executes at a time. */
  jobs_per_worker: number;
  /** Heap limit of a graph host. */
  host_memory_mb: number;
  api_keys: readonly string[];
  /** The OpenID provider whose JWTs are accepted. */
  oidc: Oidc | undefined;
  /** Permits OAuth providers at loopback addresses, also with http, for development and tests. */
  allow_loopback_oauth: boolean;
  /** The address by which users' browsers reach this service, without a slash at its end. */
  public_url: string | undefined;
  allowed_hosts: readonly string[];
  cors: CorsSettings;
  mount_prefix: string;
  /** Deployments have host names of their own below this one. */
  deployments_domain: string | undefined;
  /** Config and context of the default assistants, by graph. */
  default_assistants: Readonly<Record<string, { config: JsonObject; context: JsonObject }>>;
  body_limit_bytes: number;
  /** Streams and waits that a user with a key or a JWT may have open in this process. */
  most_open_answers: number;
  /** The same for uploads of experiments, whose bodies are not held in memory. */
  upload_limit_bytes: number;
  /** What programs that are started need of the environment. */
  system_env: Readonly<Record<string, string>>;
  /** How source of deployments may be fetched: `https`, `http`, `ssh`, `file`. */
  deploy_git_protocols: readonly string[];
  /** Hosts of git repositories that may be in a private network, or be spoken to over plain http. */
  deploy_git_hosts: readonly string[];
  /** Whom builds and instances run as where this process is root. */
  deploy_user: ReturnType<typeof readDeployUser>;
  /** Whether source is built; `auto`: not for several workspaces with the rights of the service. */
  deploy_process: "on" | "off" | "auto";
  /** Whether this process builds, starts and watches deployments, or leaves that to others on its database. */
  reconciles: boolean;
  /** Deployments that are built at a time. */
  deploy_builds: number;
  /** Answers to /ok in a row after which an instance of a deployment is ready. */
  deploy_probes: number;
  /** The same for tarballs of source. */
  source_limit_bytes: number;
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
  studio?: boolean;
  hosts?: string;
  only?: "agents";
  shareData?: boolean;
  listenFd?: string;
}

/**
 * @throws ConfigError with one sentence that names file, field and remedy
 */
export function readConfig(command: Config["command"], flags: Flags, env: Env): Config {
  const config_file = resolve(flags.config ?? "langgraph.json");
  const project = readProject(config_file);
  const project_dir = dirname(config_file);
  if (project.auth && (!isObject(project.auth) || project.auth.path !== undefined)) {
    throw new ConfigError(
      `${config_file}: the field "auth" names a module that this version does not run, so nothing would check callers: remove auth.path and use API_KEYS.`,
    );
  }
  const ignored_fields = fieldsWithoutEffect(project);
  if (command === "serve" && ignored_fields.length > 0) {
    throw new ConfigError(
      `${config_file}: ${ignored_fields.join(", ")} would have no effect: remove ${ignored_fields.length === 1 ? "this field" : "these fields"}, or use "threadmill dev", which warns and goes on.`,
    );
  }
  const storage = readStorageConfig(flags, env);
  const graph_env = readGraphEnv(project.env, { project_dir, config_file, database_url: storage.database_url }, env);
  return Object.freeze({
    command,
    threadmill_version: ownVersion(),
    project_dir,
    config_file,
    graphs: readGraphs(project.graphs, project_dir, config_file),
    graph_env,
    ignored_fields,
    host: flags.host || env.THREADMILL_HOST || "127.0.0.1",
    port: integer("--port (or PORT)", flags.port ?? env.PORT, 2024, 0, 65_535),
    listen_fd: flags.listenFd === undefined ? undefined : integer("--listen-fd", flags.listenFd, 3, 3, 1_024),
    ...storage,
    share_data: flags.shareData ?? env.THREADMILL_SHARE_DATA === "1",
    only: flags.only,
    rollout: integer("THREADMILL_ROLLOUT", env.THREADMILL_ROLLOUT, 0, 0, Number.MAX_SAFE_INTEGER) || undefined,
    inline: flags.inline ?? false,
    control_plane_file: env.THREADMILL_CONTROL_PLANE_FILE || undefined,
    hosts: integer("--hosts", flags.hosts ?? env.THREADMILL_HOSTS, Math.max(1, availableParallelism() - 1), 1, 256),
    jobs_per_worker: integer("N_JOBS_PER_WORKER", env.N_JOBS_PER_WORKER, 50, 1, 10_000),
    host_memory_mb: integer("THREADMILL_HOST_MEMORY_MB", env.THREADMILL_HOST_MEMORY_MB, 2048, 64, 1_048_576),
    api_keys: list(env.API_KEYS),
    oidc: readOidc(env),
    allow_loopback_oauth: mayUseLoopback(env),
    public_url: readPublicUrl(env.THREADMILL_PUBLIC_URL),
    allowed_hosts: list(env.ALLOWED_HOSTS),
    cors: readCors(isObject(project.http) ? project.http.cors : undefined, config_file, env, flags.studio ?? false),
    mount_prefix: readPrefix(
      env.MOUNT_PREFIX ?? (isObject(project.http) ? project.http.mount_prefix : undefined),
      config_file,
    ),
    deployments_domain: readDomain(env.THREADMILL_DEPLOYMENTS_DOMAIN),
    default_assistants: readDefaultAssistants(graph_env.LANGGRAPH_CONFIG),
    body_limit_bytes: integer(
      "HTTP_MAX_REQUEST_BODY_BYTES",
      env.HTTP_MAX_REQUEST_BODY_BYTES,
      50_000_000,
      1024,
      2 ** 31,
    ),
    most_open_answers: integer("THREADMILL_MAX_OPEN_PER_USER", env.THREADMILL_MAX_OPEN_PER_USER, 2_000, 1, 1_000_000),
    upload_limit_bytes: integer(
      "THREADMILL_MAX_UPLOAD_BYTES",
      env.THREADMILL_MAX_UPLOAD_BYTES,
      200_000_000,
      1024,
      2 ** 31,
    ),
    system_env: readSystemEnv(env),
    deploy_git_protocols: list(env.THREADMILL_DEPLOY_GIT_PROTOCOLS ?? "https,ssh"),
    deploy_git_hosts: list(env.THREADMILL_DEPLOY_GIT_HOSTS),
    deploy_user: readDeployUser(env.THREADMILL_DEPLOY_USER),
    deploy_process: oneOf("THREADMILL_DEPLOY_PROCESS", env.THREADMILL_DEPLOY_PROCESS, ["on", "off", "auto"], "auto"),
    source_limit_bytes: integer(
      "THREADMILL_MAX_SOURCE_BYTES",
      env.THREADMILL_MAX_SOURCE_BYTES,
      209_715_200,
      1024,
      2 ** 31,
    ),
    reconciles: oneOf("THREADMILL_RECONCILES", env.THREADMILL_RECONCILES, ["0", "1"], "1") === "1",
    deploy_builds: integer("THREADMILL_DEPLOY_BUILDS", env.THREADMILL_DEPLOY_BUILDS, 1, 1, 64),
    deploy_probes: integer("THREADMILL_DEPLOY_PROBES", env.THREADMILL_DEPLOY_PROBES, 3, 1, 100),
    ...readDocker(env),
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
    database_url: readDatabaseUrl(
      flags.databaseUrl ?? env.THREADMILL_DATABASE_URL ?? env.DATABASE_URL ?? env.POSTGRES_URI,
    ),
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
  const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  return manifest.version;
}
