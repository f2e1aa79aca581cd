import { availableParallelism } from "node:os";
import { duration, enabled, integer, seconds, setting, size, text } from "./setting.ts";

const MIB = 2 ** 20;

/** Graph hosts, and the time limits of runs. */
export const runSettings = {
  hosts: setting(["--hosts <number>", "THREADMILL_HOSTS"], integer(1, 256), {
    visibility: "public",
    default: String(Math.max(1, availableParallelism() - 1)),
    shown_default: "cores − 1, at least 1",
    meaning: "Graph hosts (worker threads) for runs. Reads use one more.",
  }),
  jobs_per_worker: setting("N_JOBS_PER_WORKER", integer(1, 10_000), {
    visibility: "public",
    default: "50",
    meaning: "Runs that one graph host executes at the same time.",
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
    meaning: "Run graphs on the serving thread, for debuggers. A blocking node then blocks the whole service.",
  }),
  run_timeout_ms: setting("BG_JOB_TIMEOUT_SECS", seconds, {
    visibility: "public",
    default: "3600",
    meaning: "Seconds that one attempt of a run may take before the run ends with status `timeout`.",
  }),
  shutdown_grace_ms: setting("BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS", seconds, {
    default: "20",
    meaning:
      "Seconds that running runs and requests for deployments have to finish when the service stops. The remaining runs then get the same time again, at least 1 s, to reach the end of their step.",
  }),
  cancel_grace_ms: setting("THREADMILL_CANCEL_GRACE", duration(), {
    default: "5s",
    meaning: "Time that a cancelled or timed-out node may take to stop before its result is discarded.",
  }),
  lease_ms: setting("THREADMILL_LEASE", duration(), {
    default: "4s",
    meaning:
      "Time that a process keeps its claim on a run without a heartbeat. It must be at least twice the heartbeat.",
  }),
  heartbeat_ms: setting("THREADMILL_HEARTBEAT", duration(), {
    default: "1s",
    meaning: "Interval at which a process renews its leases.",
  }),
  host_dead_ms: setting("THREADMILL_HOST_TIMEOUT", duration(), {
    default: "1m",
    meaning:
      "Time without a response after which a graph host is terminated. A node that computes longer than this without a pause terminates its host. A host that is still importing graphs has 3 minutes.",
  }),
  disconnect_grace_ms: setting("THREADMILL_DISCONNECT_GRACE", duration(), {
    default: "2s",
    meaning: "Time that a client has to reconnect before a run with `on_disconnect: cancel` is cancelled.",
  }),
  schema_timeout_ms: setting("LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS", integer(1, 2 ** 31 - 1), {
    default: "30000",
    meaning:
      "Milliseconds that reading the schemas of a graph from its TypeScript types may take. After that, the schemas contain the names of the keys only.",
  }),
  default_assistants_json: setting("LANGGRAPH_CONFIG", text, {
    meaning:
      'JSON with the configuration of the default assistants: `{"<graph>": {"configurable": {}, "context": {}}}`. All fields except `context` become the `config` of the assistant. `env` of langgraph.json can set it, too.',
  }),
};
