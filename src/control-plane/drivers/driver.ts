import type { LogLevel } from "../contract/logs.ts";

/**
 * What deployments run on. A driver keeps no state that it needs: every call may be repeated after a crash, and instances are found
 * by their ids.
 */
export interface DeployDriver {
  readonly kind: string;
  /** Builds an artifact from source, cached by content. Absent for drivers that run images. */
  build?(spec: BuildSpec, io: BuildIo): Promise<Built>;
  /**
   * Makes an image available and returns its permanent name, so that the revision always starts the same image. Absent for drivers
   * that build. Called at the start of each rollout, even with a name that an earlier call returned.
   */
  pin?(spec: ImageSpec, io: BuildIo): Promise<string>;
  /** Starts the instance, or attaches to the running one. */
  ensure(spec: InstanceSpec): Promise<InstanceRef>;
  /** Checks the process or container. The reconciler checks `/ok`. */
  probe(ref: InstanceRef): Promise<InstanceCondition>;
  /** Requests the end of an instance, and kills it after the grace. Does nothing when it has ended. */
  stop(ref: InstanceRef, options: { grace_ms: number }): Promise<void>;
  /** All instances of this service, including those of earlier processes: to attach to them, and to stop orphans. */
  list(): Promise<InstanceRef[]>;
  /** Removes the builds of a deployment except these. Absent for drivers that run images. No build runs at the same time. */
  prune?(deployment: { deployment_id: string; keep: readonly string[] }): Promise<void>;
  /** Removes the resources of a deployment: folders, database, images that no other deployment uses. */
  remove(deployment: { deployment_id: string; artifacts: readonly string[] }): Promise<void>;
  /** Releases the driver's own resources. Instances keep running. */
  close?(): Promise<void>;
}

export interface Drivers {
  readonly all: readonly DeployDriver[];
  /** Undefined: this service cannot run deployments of this source. */
  driverFor(source: string): DeployDriver | undefined;
}

/** The process driver builds and runs source; the Docker driver runs images. */
export const driversBySource = ({ process, docker }: { process: DeployDriver; docker: DeployDriver }): Drivers => ({
  all: [process, docker],
  driverFor(source) {
    if (source === "github" || source === "internal_source") return process;
    return source === "external_docker" || source === "internal_docker" ? docker : undefined;
  },
});

export interface BuildSpec {
  deployment_id: string;
  revision_id: string;
  source:
    | { kind: "tarball"; file: string; sha256: string }
    /** `ssh_key`: the private key for a repository that is fetched over ssh. */
    | { kind: "git"; url: string; ref: string | undefined; ssh_key: string | undefined };
  /** The path of langgraph.json in the source; undefined: at its root. */
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
  /** The name from the request, or the pinned name. */
  image: string;
  /** Whether the driver returned this name before: it does not ask the registry again. */
  pinned: boolean;
}

export interface BuildIo {
  log(line: LogLine): void;
  /** Aborted when the revision is interrupted or the process stops. */
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
  replica: number;
  artifact: string;
  config_path: string | undefined;
  /** The key that the instance requires of its callers. */
  api_key: string;
  /** The password of the deployment's role, when its database is the service's Postgres. */
  database_password: string;
  /** Secrets of the deployment and variables that the service adds, without the environment of the service. */
  env: Readonly<Record<string, string>>;
  resources: { cpu_limit: number | undefined; memory_limit_mb: number | undefined };
  /** Receives the output of the instance. */
  log(line: LogLine): void;
  /**
   * Resolves when all lines so far are stored. Rejects when they never will be: the driver then sends no more lines, and the next
   * `ensure` receives them again.
   */
  logsPersisted?(): Promise<void>;
}

/** How a driver finds an instance again. Plain data, as it is stored. */
export interface InstanceRef {
  instance_id: string;
  deployment_id: string;
  revision_id: string;
  /** Specific to the driver: pid and start time, or a container's id. */
  handle: string;
  address: string;
}

export type InstanceCondition = { state: "running" } | { state: "ended"; reason: string };

/**
 * A build or a start failed because of the user's source, image or settings. The message is shown to users. All other errors are
 * retried.
 */
export class DeployError extends Error {}

const FIRST_BACK_OFF_MS = 1_000;
const MAX_BACK_OFF_MS = 60_000;

/** The delay after `n` consecutive failures (at least 1): 1 s, 2 s, 4 s, up to 60 s. */
export const backOffMs = (failures: number): number =>
  Math.min(FIRST_BACK_OFF_MS * 2 ** (failures - 1), MAX_BACK_OFF_MS);
