import { ConfigError } from "../platform/errors.ts";
import { type Env, integer, number } from "./values.ts";

const DAY_MS = 86_400_000;

/** Graces, leases and retention; tests shorten them. All in milliseconds. */
export interface Timing {
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
  /** Each command of a build of a deployment. */
  build_timeout_ms: number;
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
  /** Reading the schemas of a graph from its TypeScript types. */
  schema_timeout_ms: number;
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
  /** How long an instance of a deployment serves without a control plane. */
  orphan_ms: number;
  /** How long a request for a deployment waits for an instance when none is ready. */
  router_wait_ms: number;
}

export function readTiming(env: Env): Timing {
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
    schema_timeout_ms: ms("LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS", 30_000),
    shutdown_grace_ms: seconds("BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS", 20),
    build_timeout_ms: seconds("THREADMILL_DEPLOY_BUILD_SECS", 900),
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
    orphan_ms:
      1000 * integer("THREADMILL_DEPLOY_ORPHAN_SECS", env.THREADMILL_DEPLOY_ORPHAN_SECS, 86_400, 1, 31_536_000),
    router_wait_ms: ms("THREADMILL_ROUTER_WAIT_MS", 5_000),
    token_event_retention_ms:
      DAY_MS * integer("THREADMILL_TOKEN_EVENT_DAYS", env.THREADMILL_TOKEN_EVENT_DAYS, 90, 1, 36_500),
  };
}
