import { availableParallelism } from "node:os";
import { duration, enabled, integer, optional, seconds, setting, size, text } from "./setting.ts";

const MIB = 2 ** 20;

/** Graph hosts, and the time limits of runs. */
export const runSettings = {
  hosts: setting({
    env: ["THREADMILL_HOSTS"],
    flag: "--hosts <number>",
    visibility: "public",
    default: String(Math.max(1, availableParallelism() - 1)),
    shown_default: "cores − 1, at least 1",
    read: integer(1, 256),
    meaning: "Graph hosts (worker threads) for runs. Reads use one more.",
  }),
  jobs_per_worker: setting({
    env: ["N_JOBS_PER_WORKER"],
    visibility: "public",
    default: "50",
    read: integer(1, 10_000),
    meaning: "Runs that one graph host executes at the same time.",
  }),
  host_memory_mb: setting({
    env: ["THREADMILL_HOST_MEMORY"],
    visibility: "advanced",
    default: "2GiB",
    read: (value, name) => Math.floor(size(64 * MIB, 2 ** 40)(value, name) / MIB),
    meaning: "Heap limit of a graph host, 64 MiB or more.",
  }),
  inline: setting({
    flag: "--inline",
    visibility: "advanced",
    default: "0",
    shown_default: "off",
    read: enabled,
    meaning: "Run graphs on the serving thread, for debuggers. A node that blocks then blocks the whole service.",
  }),
  run_timeout_ms: setting({
    env: ["BG_JOB_TIMEOUT_SECS"],
    visibility: "public",
    default: "3600",
    read: seconds,
    meaning: "Seconds that one attempt of a run may take before the run ends with status `timeout`.",
  }),
  shutdown_grace_ms: setting({
    env: ["BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS"],
    visibility: "advanced",
    default: "20",
    read: seconds,
    meaning:
      "Seconds that running runs, and requests for deployments, get when the service stops. Runs that are left get the same time again, at least 1 s, to reach the end of their step.",
  }),
  cancel_grace_ms: setting({
    env: ["THREADMILL_CANCEL_GRACE"],
    visibility: "advanced",
    default: "5s",
    read: duration(),
    meaning: "Time that a cancelled or timed-out node may take to stop before its result is discarded.",
  }),
  lease_ms: setting({
    env: ["THREADMILL_LEASE"],
    visibility: "advanced",
    default: "4s",
    read: duration(),
    meaning:
      "Time that a process keeps its claim on a run without a heartbeat. It must be at least twice the heartbeat.",
  }),
  heartbeat_ms: setting({
    env: ["THREADMILL_HEARTBEAT"],
    visibility: "advanced",
    default: "1s",
    read: duration(),
    meaning: "Interval at which a process renews its leases.",
  }),
  host_dead_ms: setting({
    env: ["THREADMILL_HOST_TIMEOUT"],
    visibility: "advanced",
    default: "1m",
    read: duration(),
    meaning:
      "Time without a response after which a graph host is terminated. A node that computes longer than this without a pause terminates its host. A host that is still importing graphs has 3 minutes.",
  }),
  disconnect_grace_ms: setting({
    env: ["THREADMILL_DISCONNECT_GRACE"],
    visibility: "advanced",
    default: "2s",
    read: duration(),
    meaning: "Time that a client has to reconnect before a run with `on_disconnect: cancel` is cancelled.",
  }),
  schema_timeout_ms: setting({
    env: ["LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS"],
    visibility: "advanced",
    default: "30000",
    read: integer(1, 2 ** 31 - 1),
    meaning:
      "Milliseconds that reading the schemas of a graph from its TypeScript types may take. After that, the schemas contain the names of the keys only.",
  }),
  default_assistants_json: optional({
    env: ["LANGGRAPH_CONFIG"],
    visibility: "advanced",
    read: text,
    meaning:
      'JSON with the configuration of the default assistants: `{"<graph>": {"configurable": {}, "context": {}}}`. Everything except `context` becomes the `config` of the assistant. `env` of langgraph.json may set it, too.',
  }),
};
