import { ConfigError } from "../../platform/errors.ts";
import { enabled, integer, list, oneOf, optional, type Read, seconds, setting, size, text } from "./setting.ts";

const MAX_BODY_BYTES = 2 ** 31;

/** Where the service listens, which callers and pages reach it, and what it accepts. */
export const serverSettings = {
  host: setting({
    env: ["THREADMILL_HOST"],
    flag: "--host <address>",
    visibility: "public",
    default: "127.0.0.1",
    read: text,
    meaning:
      "Address to listen on. Any address other than loopback is refused unless there is a key in the database, `API_KEYS` or an OIDC issuer.",
  }),
  port: setting({
    env: ["PORT"],
    flag: "--port <number>",
    visibility: "public",
    default: "2024",
    read: integer(0, 65_535),
    meaning: "Port to listen on. `0` selects a free port.",
  }),
  log_level: setting({
    env: ["LOG_LEVEL"],
    flag: "--log-level <level>",
    visibility: "public",
    default: "info",
    read: oneOf(["debug", "info", "warn", "error", "silent"]),
    meaning:
      "Lowest level that is logged: `debug`, `info`, `warn`, `error` or `silent`. The log is JSON lines on standard error.",
  }),
  public_url: optional({
    env: ["THREADMILL_PUBLIC_URL"],
    visibility: "public",
    read: readPublicUrl,
    meaning:
      "Address at which users' browsers reach the service, such as `https://agents.example.com`, including a path prefix. OAuth providers redirect users there. Without it, a server on loopback uses the address of the request (its graphs use `http://localhost:<port>`), and other servers need a `default_redirect_uri` for each provider.",
  }),
  api_keys: setting({
    env: ["API_KEYS"],
    visibility: "public",
    secret: true,
    default: "",
    read: list,
    meaning: "Comma-separated keys of the user `admin`. See [Access](access.md#keys-of-the-environment).",
  }),
  allowed_hosts: setting({
    env: ["ALLOWED_HOSTS"],
    visibility: "advanced",
    default: "",
    read: list,
    meaning:
      "Comma-separated host names, in lower case, that a server on loopback answers to besides `localhost`, `127.x.x.x`, `[::1]` and `*.localhost`. It has no effect on other addresses.",
  }),
  cors_allow_origins: setting({
    env: ["CORS_ALLOW_ORIGINS"],
    visibility: "public",
    default: "",
    shown_default: "without keys: pages on loopback; with keys: all",
    read: list,
    meaning:
      "Comma-separated origins of web pages that may use the service besides its own pages, or `*`. See [Web pages](security.md#web-pages). Origins in `http.cors` of langgraph.json are added.",
  }),
  studio: setting({
    flag: "--studio",
    visibility: "advanced",
    default: "0",
    shown_default: "off",
    read: enabled,
    meaning: "Allow the hosted Studio to use the agent server, and print the address to open.",
  }),
  mount_prefix: optional({
    env: ["MOUNT_PREFIX"],
    visibility: "advanced",
    read: text,
    meaning: "Prefix of all paths, such as `/agents`. It takes precedence over `http.mount_prefix` of langgraph.json.",
  }),
  max_open_per_user: setting({
    env: ["THREADMILL_MAX_OPEN_PER_USER"],
    visibility: "advanced",
    default: "2000",
    read: integer(1, 1_000_000),
    meaning:
      "Maximum number of open streams and requests that wait for a result, per user and process. The limit applies to keys in the database and JWTs, not to `API_KEYS` or a service without keys.",
  }),
  body_limit_bytes: setting({
    env: ["HTTP_MAX_REQUEST_BODY_BYTES"],
    visibility: "advanced",
    default: "50000000",
    read: integer(1024, MAX_BODY_BYTES),
    meaning: "Largest request body in bytes. Larger bodies get status 413.",
  }),
  upload_limit_bytes: setting({
    env: ["THREADMILL_MAX_UPLOAD"],
    visibility: "advanced",
    default: "200MB",
    read: size(1024, MAX_BODY_BYTES),
    meaning: "Largest upload of an experiment. Uploads are not held in memory.",
  }),
  source_limit_bytes: setting({
    env: ["THREADMILL_MAX_SOURCE"],
    visibility: "advanced",
    default: "200MiB",
    read: size(1024, MAX_BODY_BYTES),
    meaning: "Largest source archive of a deployment.",
  }),
  event_retention_ms: setting({
    env: ["RESUMABLE_STREAM_TTL_SECONDS"],
    visibility: "advanced",
    default: "3600",
    read: seconds,
    meaning: "Seconds that the events of a run are kept after its end.",
  }),
  only: optional({
    flag: "--only <part>",
    visibility: "advanced",
    shown_default: "everything",
    read: oneOf(["agents"]),
    meaning:
      "Serve one part: `agents` is the agent server alone, which needs no encryption key. Processes of deployments run this way.",
  }),
  listen_fd: optional({
    flag: "--listen-fd <number>",
    visibility: "advanced",
    read: integer(3, 1_024),
    meaning: "Use an inherited listening socket with this file descriptor instead of `--host` and `--port`.",
  }),
};

function readPublicUrl(value: string, name: string): string {
  const url = URL.parse(value);
  if (url && /^https?:$/.test(url.protocol) && !url.search && !url.hash && !url.username)
    return value.replace(/\/+$/, "");
  throw new ConfigError(
    `${name} must be the address at which browsers reach this service, such as https://agents.example.com, but is "${value}".`,
  );
}

/** A host name without scheme and port, in lower case. */
export const hostName: Read<string> = (value, name) => {
  const domain = value.toLowerCase();
  if (/^[a-z0-9-]+(\.[a-z0-9-]+)*$/.test(domain)) return domain;
  throw new ConfigError(
    `${name} must be a host name such as agents.example.com, without scheme and port, but is "${value}".`,
  );
};
