import { availableParallelism } from "node:os";
import { ConfigError } from "../../platform/errors.ts";
import { duration, enabled, integer, list, oneOf, seconds, setting, size, text } from "./setting.ts";

const MIB = 2 ** 20;

/** Settings of graph hosts and runs. */
export const runSettings = {
  hosts: setting(["--hosts <number>", "THREADMILL_HOSTS"], integer(1, 256), {
    visibility: "public",
    default: String(Math.max(1, availableParallelism() - 1)),
    shown_default: "cores − 1, at least 1",
    meaning: "Number of graph hosts (worker threads) for runs. State reads use one additional graph host.",
  }),
  python: setting(["--python <path>", "THREADMILL_PYTHON"], text, {
    shown_default: "selected automatically",
    meaning:
      "Python interpreter that executes Python graphs. The default is the first of these that exists: the virtual environment of the project, the active environment, a suitable Python on the PATH. See [Python graphs](python.md#interpreter).",
  }),
  python_hosts: setting(["--python-hosts <number>", "THREADMILL_PYTHON_HOSTS"], integer(1, 256), {
    shown_default: "`dev`: 1; `serve`: the value of `THREADMILL_HOSTS`, at most 4",
    meaning:
      "Number of graph hosts (processes) for runs of Python graphs. State reads use one additional process. With `THREADMILL_PYTHON_SPARE`, another process is kept as a spare.",
  }),
  python_spare: setting("THREADMILL_PYTHON_SPARE", enabled, {
    default: "1",
    meaning:
      "Keep one spare Python process for reloads and for replacing lost hosts. The spare process has already imported LangGraph and uses 70 MB.",
  }),
  jobs_per_worker: setting("N_JOBS_PER_WORKER", integer(1, 10_000), {
    visibility: "public",
    default: "50",
    meaning: "Maximum number of runs that a graph host executes concurrently.",
  }),
  host_memory_mb: setting(
    "THREADMILL_HOST_MEMORY",
    (value, name) => Math.floor(size(64 * MIB, 2 ** 40)(value, name) / MIB),
    {
      default: "2GiB",
      meaning: "Heap limit of a graph host, at least 64 MiB.",
    },
  ),
  inline: setting("--inline", enabled, {
    default: "0",
    shown_default: "off",
    meaning:
      "Execute JavaScript graphs on the server's main thread, for debugging. A blocking node then blocks the whole service.",
  }),
  run_timeout_ms: setting("BG_JOB_TIMEOUT_SECS", seconds, {
    visibility: "public",
    default: "3600",
    meaning: "Time limit in seconds for one attempt of a run. After this time the run ends with status `timeout`.",
  }),
  cron_missed: setting("THREADMILL_CRON_MISSED", oneOf(["skip", "last"]), {
    default: "skip",
    meaning:
      "What to do if a cron missed scheduled times, that is, if they passed more than a minute ago without a run, for example because no process was running. `skip` creates no run. `last` creates one run for all missed times together.",
  }),
  webhook_keys: setting("THREADMILL_WEBHOOK_SECRET", readWebhookKeys, {
    default: "",
    shown_default: "none",
    secret: true,
    meaning:
      "Secret that signs [webhooks](webhooks.md): `whsec_` followed by a base64 key of at least 24 bytes. To rotate the secret, set the new and the old one, separated by a comma. If not set, webhooks are not signed.",
  }),
  shutdown_grace_ms: setting("BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS", seconds, {
    default: "20",
    meaning:
      "Grace period in seconds in which runs, and requests that are routed to deployments, can finish when the service stops. Remaining runs then get the same period again, at least 1 s, to finish their current step.",
  }),
  cancel_grace_ms: setting("THREADMILL_CANCEL_GRACE", duration(), {
    default: "5s",
    meaning:
      "Grace period for a node to stop after a cancellation or timeout. After this period, the node's result is discarded.",
  }),
  lease_ms: setting("THREADMILL_LEASE", duration(), {
    default: "4s",
    meaning: "Duration of a process's lease on a run. It must be at least twice the heartbeat interval.",
  }),
  heartbeat_ms: setting("THREADMILL_HEARTBEAT", duration(), {
    default: "500ms",
    meaning: "Interval at which a process renews the leases of its runs.",
  }),
  host_dead_ms: setting("THREADMILL_HOST_TIMEOUT", duration(), {
    default: "1m",
    meaning:
      "A graph host is terminated if it does not respond for this long, for example because a node blocks its event loop. While a host imports graphs, the limit is at least 3 minutes.",
  }),
  disconnect_grace_ms: setting("THREADMILL_DISCONNECT_GRACE", duration(), {
    default: "2s",
    meaning: "Grace period for a client to reconnect before its run with `on_disconnect: cancel` is cancelled.",
  }),
  schema_timeout_ms: setting("LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS", integer(1, 2 ** 31 - 1), {
    default: "30000",
    meaning:
      "Time limit in milliseconds for extracting a graph's schemas from TypeScript types. If the limit is exceeded, the schemas contain only the names of the keys.",
  }),
  default_assistants_json: setting("LANGGRAPH_CONFIG", text, {
    meaning:
      'Configuration of the default assistants, as JSON: `{"<graph>": {"configurable": {}, "context": {}}}`. All fields except `context` become the `config` of the assistant. This setting can also be in the `env` field of langgraph.json.',
  }),
};

function readWebhookKeys(value: string, name: string): readonly Uint8Array<ArrayBuffer>[] {
  return list(value, name).map((secret) => {
    const [, key] = /^whsec_([A-Za-z0-9+/]{4,}={0,2})$/.exec(secret) ?? [];
    if (key !== undefined) return new Uint8Array(Buffer.from(key, "base64"));
    throw new ConfigError(
      `${name} must be "whsec_" followed by a base64 key, or several such secrets separated by commas.`,
    );
  });
}
