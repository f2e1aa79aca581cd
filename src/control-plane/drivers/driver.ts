import type { LogLevel } from "../contract/logs.ts";

/**
 * Runs deployments. A driver does not depend on state in memory: every call can be repeated after a crash, and instances are found by
 * ID.
 */
export interface DeployDriver {
  readonly kind: string;
  /** Builds an artifact from source and caches it by content. Not implemented by drivers that run images. */
  build?(spec: BuildSpec, io: BuildIo): Promise<Built>;
  /**
   * Makes an image available and returns its pinned name, so that a revision always starts the same image. Not implemented by drivers
   * that build. Called at the start of each rollout, even with a name that an earlier call returned.
   */
  pin?(spec: ImageSpec, io: BuildIo): Promise<string>;
  /** Starts the instance, or attaches to a running instance. */
  ensure(spec: InstanceSpec): Promise<InstanceRef>;
  /** Checks whether the process or container is running. The reconciler checks separately whether `/ok` responds. */
  probe(ref: InstanceRef): Promise<InstanceCondition>;
  /** Stops an instance, and kills it after the grace period. Does nothing if the instance has ended. */
  stop(ref: InstanceRef, options: { grace_ms: number }): Promise<void>;
  /** Lists all instances of this service, including those that earlier processes of the service started. */
  list(): Promise<InstanceRef[]>;
  /** Removes all builds of a deployment except those in `keep`. Not called during a build. Not implemented by drivers that run images. */
  prune?(deployment: { deployment_id: string; keep: readonly string[] }): Promise<void>;
  /** Removes a deployment's resources: folders, database, and images that no other deployment uses. */
  remove(deployment: { deployment_id: string; artifacts: readonly string[] }): Promise<void>;
  /** Releases the driver's own resources. Instances keep running, unless the driver was created with a grace period for them. */
  close?(): Promise<void>;
}

export interface BuildSpec {
  deployment_id: string;
  revision_id: string;
  source:
    | { kind: "tarball"; file: string; sha256: string }
    /** `ssh_key` is the private key for a repository that is fetched over ssh. */
    | { kind: "git"; url: string; ref: string | undefined; ssh_key: string | undefined };
  /** Path of langgraph.json in the source. Default: `langgraph.json` in the root folder. */
  config_path: string | undefined;
  install_command: string | undefined;
  build_command: string | undefined;
  env: Readonly<Record<string, string>>;
}

export interface Built {
  artifact: string;
  /** The commit of a git source. */
  commit_sha?: string;
}

export interface ImageSpec {
  deployment_id: string;
  /** Image name from the request, or the pinned name. */
  image: string;
  /** Whether `image` is a pinned name. If so, the driver does not resolve it in the registry again. */
  pinned: boolean;
}

export interface BuildIo {
  log(line: LogLine): void;
  /** Aborted when the revision is interrupted, the deployment is deleted, or the process stops or loses the lease. */
  signal: AbortSignal;
}

export interface LogLine {
  at: number;
  level: LogLevel;
  message: string;
  run_id?: string;
}

export const infoLine = (message: string): LogLine => ({ at: Date.now(), level: "INFO", message });

export interface InstanceSpec {
  instance_id: string;
  deployment_id: string;
  revision_id: string;
  tenant_id: string;
  /** Kubernetes namespace of a deployment with a listener; undefined for the default of the listener. */
  namespace?: string | undefined;
  replica: number;
  artifact: string;
  config_path: string | undefined;
  /** API key that the instance requires from its callers. */
  api_key: string;
  /** Password of the deployment's role, if the deployment uses the service's Postgres. */
  database_password: string;
  /** Secrets of the deployment and variables that the service adds, without the environment of the service. */
  env: Readonly<Record<string, string>>;
  resources: { cpu_limit: number | undefined; memory_limit_mb: number | undefined };
  /** Receives the output of the instance. */
  log(line: LogLine): void;
  /**
   * Resolves when all previous lines are stored. Rejects when they cannot be stored: the driver then sends no more lines, and the
   * next `ensure` sends the same lines again.
   */
  logsPersisted?(): Promise<void>;
}

/** Reference with which a driver finds an instance. Plain data, because it is stored in the database. */
export interface InstanceRef {
  instance_id: string;
  deployment_id: string;
  revision_id: string;
  /** Driver-specific: the process ID and start time, or the container ID. */
  handle: string;
  address: string;
}

export type InstanceCondition = { state: "running" } | { state: "ended"; reason: string };

/**
 * Thrown if a build or a start fails for a reason that users can fix, such as the source. The message is shown to users. Other errors are
 * retried.
 */
export class DeployError extends Error {}

const FIRST_BACK_OFF_MS = 1_000;
const MAX_BACK_OFF_MS = 60_000;

/** Returns the delay after a number of consecutive failures (at least 1): 1 s, 2 s, 4 s, up to 60 s. */
export const backOffMs = (failures: number): number =>
  Math.min(FIRST_BACK_OFF_MS * 2 ** (failures - 1), MAX_BACK_OFF_MS);
