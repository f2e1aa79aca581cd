import { ConfigError } from "../../platform/errors.ts";
import {
  duration,
  enabled,
  integer,
  list,
  MAX_RETENTION_MS,
  oneOf,
  type Read,
  seconds,
  setting,
  size,
  text,
} from "./setting.ts";

const MAX_BODY_BYTES = 2 ** 31;

/** More processes than cores use memory without adding throughput. */
const MAX_WORKERS = 64;

/** Settings of the server: addresses, access, limits and retention. */
export const serverSettings = {
  host: setting(["--host <address>", "THREADMILL_HOST"], text, {
    visibility: "public",
    default: "127.0.0.1",
    meaning:
      "Address to listen on. An address other than loopback requires one of these: an API key (in the database or in `API_KEYS`), an OIDC issuer, or an authentication module.",
  }),
  port: setting(["--port <number>", "PORT"], integer(0, 65_535), {
    visibility: "public",
    default: "2024",
    meaning: "Port to listen on. `0` selects a free port.",
  }),
  log_level: setting(["--log-level <level>", "LOG_LEVEL"], oneOf(["debug", "info", "warn", "error", "silent"]), {
    visibility: "public",
    default: "info",
    meaning:
      "Minimum level of logged messages: `debug`, `info`, `warn`, `error` or `silent`. Logs are written to standard error as JSON lines.",
  }),
  public_url: setting("THREADMILL_PUBLIC_URL", readPublicUrl, {
    visibility: "public",
    meaning:
      "URL at which browsers reach the service, including any path prefix, such as `https://agents.example.com`. OAuth providers redirect users there. By default, a server on loopback uses the URL of the request, or `http://localhost:<port>` for OAuth flows that a run starts; other servers require a `default_redirect_uri` for each provider.",
  }),
  api_keys: setting("API_KEYS", list, {
    visibility: "public",
    secret: true,
    default: "",
    meaning:
      "Comma-separated API keys that authenticate the user `admin`. See [Access](access.md#keys-in-the-environment).",
  }),
  allowed_hosts: setting("ALLOWED_HOSTS", list, {
    default: "",
    meaning:
      "Comma-separated host names in lower case that a server on loopback accepts in the `Host` header in addition to `localhost`, `127.x.x.x`, `[::1]` and `*.localhost`. Servers on other addresses ignore this setting.",
  }),
  cors_allow_origins: setting("CORS_ALLOW_ORIGINS", list, {
    visibility: "public",
    default: "",
    shown_default: "all origins if authentication is enabled, otherwise loopback origins",
    meaning:
      "Comma-separated origins of web pages that may send requests to the service, or `*` for all origins. See [Web pages](security.md#web-pages). Origins in `http.cors` of langgraph.json are also allowed.",
  }),
  studio: setting("--studio", enabled, {
    default: "0",
    shown_default: "off",
    meaning: "Allow the hosted Studio to use the agent server, and print the Studio URL.",
  }),
  mount_prefix: setting("MOUNT_PREFIX", text, {
    meaning: "Prefix of all paths, such as `/agents`. It takes precedence over `http.mount_prefix` of langgraph.json.",
  }),
  body_limit_bytes: setting("HTTP_MAX_REQUEST_BODY_BYTES", integer(1024, MAX_BODY_BYTES), {
    default: "50000000",
    meaning:
      "Maximum size of a request body in bytes, except for traces and uploads, which have their own limits. A larger body is rejected with status 413.",
  }),
  upload_limit_bytes: setting("THREADMILL_MAX_UPLOAD", size(1024, MAX_BODY_BYTES), {
    default: "200MB",
    meaning:
      "Maximum size of an experiment upload, and of a trace request body after decompression. Before decompression, a trace request body is limited to 64 MiB. Experiment uploads are not kept in memory.",
  }),
  source_limit_bytes: setting("THREADMILL_MAX_SOURCE", size(1024, MAX_BODY_BYTES), {
    default: "200MiB",
    meaning: "Maximum size of a deployment's source archive.",
  }),
  event_retention_ms: setting("RESUMABLE_STREAM_TTL_SECONDS", seconds, {
    default: "3600",
    meaning: "Number of seconds that a run's events are kept after the run ends.",
  }),
  run_retention_ms: setting("THREADMILL_RUN_RETENTION", duration(0, MAX_RETENTION_MS), {
    shown_default: "until the thread is deleted",
    meaning:
      "Retention period of ended runs on threads. A deleted run no longer appears in the lists of its thread, and joining it returns 404. The thread keeps its state and history, and traces have their own retention. A run is never deleted before its events expire (RESUMABLE_STREAM_TTL_SECONDS). See [threads.md](threads.md#retention).",
  }),
  trace_retention_days: setting("THREADMILL_TRACE_DAYS", integer(1, 36_500), {
    default: "14",
    meaning:
      "Number of days after which the traces of projects with `trace_tier: shortlived` are deleted. See [tracing.md](tracing.md#retention).",
  }),
  only: setting("--only <part>", oneOf(["agents"]), {
    shown_default: "everything",
    meaning:
      "Serve only one part of the service: `agents` is the agent server, which requires no encryption key. Used by deployment instances.",
  }),
  role: setting(["--role <role>", "THREADMILL_ROLE"], oneOf(["all", "api", "worker"]), {
    visibility: "public",
    default: "all",
    meaning:
      "What the process does: `all` serves HTTP and executes runs; `api` serves HTTP and executes no runs; `worker` executes runs and serves only `/ok` and `/metrics`. `api` and `worker` require Postgres, or `--share-data`. See [Scaling](scaling.md#roles).",
  }),
  workers: setting(["--workers <number>", "THREADMILL_WORKERS"], integer(0, MAX_WORKERS), {
    visibility: "advanced",
    default: "0",
    meaning:
      "Number of worker processes of `threadmill serve` that execute runs on this machine. If this number is greater than 0, the main process executes no runs, so that no graph can crash or block it. See [Scaling](scaling.md#worker-processes).",
  }),
  worker_process: setting("--worker-process", enabled, {
    default: "0",
    shown_default: "off",
    meaning: "Set by the service for its own worker processes (`--workers`).",
  }),
  listen_fd: setting("--listen-fd <number>", integer(3, 1_024), {
    meaning: "Use an inherited listening socket with this file descriptor instead of `--host` and `--port`.",
  }),
};

function readPublicUrl(value: string, name: string): string {
  const url = URL.parse(value);
  if (url && /^https?:$/.test(url.protocol) && !url.search && !url.hash && !url.username)
    return value.replace(/\/+$/, "");
  throw new ConfigError(
    `${name} must be the URL at which browsers reach this service, such as https://agents.example.com, but is "${value}".`,
  );
}

export const hostName: Read<string> = (value, name) => {
  const domain = value.toLowerCase();
  if (/^[a-z0-9-]+(\.[a-z0-9-]+)*$/.test(domain)) return domain;
  throw new ConfigError(
    `${name} must be a host name such as agents.example.com, without a scheme or port, but is "${value}".`,
  );
};

/** @throws ConfigError if the process cannot have this role */
export function requireRole(
  command: "dev" | "serve",
  { role, workers }: { role: string; workers: number },
  { database_url, share_data, rollout }: { database_url: string | undefined; share_data: boolean; rollout: unknown },
): void {
  if (role === "all" && workers === 0) return;
  const name = workers > 0 ? "workers" : "role";
  const variable = `THREADMILL_${name.toUpperCase()}`;
  const refuse = (reason: string) => {
    throw new ConfigError(`--${name} (or ${variable}) is ${workers || role}, but ${reason}`);
  };
  if (command === "dev")
    refuse('"threadmill dev" always runs in a single process: use "threadmill serve", or omit this setting.');
  if (rollout !== undefined)
    refuse(
      `a deployment instance must serve requests and execute runs in one process: remove ${variable} from the secrets or the image of the deployment.`,
    );
  if (workers > 0 && role !== "all")
    refuse(
      `worker processes require the role "all", not "${role}". Omit the role (--role or THREADMILL_ROLE) or the workers (--workers or THREADMILL_WORKERS).`,
    );
  // Worker processes are on the machine of the data folder.
  if (!database_url && workers === 0 && !share_data)
    refuse(
      "processes with different roles must share a database. Set DATABASE_URL, for example to postgres://user:password@host:5432/database. If all processes run on this machine, you can set --share-data instead. To run a single process on SQLite, omit the role.",
    );
}
