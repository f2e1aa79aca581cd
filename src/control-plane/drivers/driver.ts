/**
 * The seam between the reconciler and what deployments run on. A driver keeps no truth: whatever it is asked may be asked again
 * after a crash, and it finds its instances by their ids.
 */
export interface DeployDriver {
  readonly kind: string;
  /** Makes an artifact of source; absent where images come from elsewhere. Cached by content. */
  build?(order: BuildOrder, io: BuildIo): Promise<{ artifact: string; commit_sha?: string }>;
  /**
   * What an image is called for good, once it is here, so that the revision starts the very same one whenever it is deployed; absent
   * where nothing runs images. Asked at the begin of each roll-out, also with what it has answered before.
   */
  pin?(order: ImageOrder, io: BuildIo): Promise<string>;
  /** Starts the instance, or finds the one that is there. */
  ensure(order: InstanceOrder): Promise<InstanceRef>;
  /** Looks at the process or container itself; whether it answers `/ok` is the reconciler's question. */
  probe(ref: InstanceRef): Promise<InstanceCondition>;
  /** Asks it to end, and ends it after the grace. Of one that is gone: nothing. */
  stop(ref: InstanceRef, options: { grace_ms: number }): Promise<void>;
  /** Everything of ours that is there, whoever started it: for adoption, and to remove what belongs to nobody. */
  list(): Promise<InstanceRef[]>;
  /** Removes what was built for a deployment but these; absent where nothing is built. Nothing of it is built meanwhile. */
  prune?(deployment: { deployment_id: string; keep: readonly string[] }): Promise<void>;
  /** Removes what a deployment has left: folders, database, images that nobody else uses. */
  remove(deployment: { deployment_id: string; artifacts: readonly string[] }): Promise<void>;
  /** Lets go of everything. What runs goes on, and is found again by the next service. */
  close?(): Promise<void>;
}

/** The drivers that this service has. */
export interface Drivers {
  readonly all: readonly DeployDriver[];
  /** Undefined: deployments of this source cannot run here. */
  driverFor(source: string): DeployDriver | undefined;
}

export interface BuildOrder {
  deployment_id: string;
  revision_id: string;
  source:
    | { kind: "tarball"; file: string; sha256: string }
    | {
        kind: "git";
        url: string;
        ref: string | undefined;
        token: string | undefined;
        /** The private key for a repository that is fetched over ssh. */
        ssh_key: string | undefined;
      };
  /** Of langgraph.json within the source; undefined: at its root. */
  config_path: string | undefined;
  install_command: string | undefined;
  build_command: string | undefined;
  env: Readonly<Record<string, string>>;
}

export interface ImageOrder {
  deployment_id: string;
  /** As somebody has named it, or as it was pinned. */
  image: string;
  /** Whether the driver returned this name before: its registry is not asked again. */
  pinned: boolean;
}

export interface BuildIo {
  log(line: LogLine): void;
  /** Aborted when the revision is interrupted or the process stops. */
  signal: AbortSignal;
}

export interface LogLine {
  at: number;
  level: "DEBUG" | "INFO" | "WARNING" | "ERROR" | "CRITICAL";
  message: string;
  run_id?: string;
}

export interface InstanceOrder {
  instance_id: string;
  deployment_id: string;
  revision_id: string;
  tenant_id: string;
  replica: number;
  artifact: string;
  config_path: string | undefined;
  /** The key that the instance asks of its callers. */
  api_key: string;
  /** Of the deployment's own role, where its database is the service's Postgres. */
  database_password: string;
  /** The deployment's secrets, and what the service itself adds. Nothing of the service's own environment. */
  env: Readonly<Record<string, string>>;
  resources: { cpu_limit: number | undefined; memory_limit_mb: number | undefined };
  /** What the instance writes. */
  log(line: LogLine): void;
  /**
   * Resolves when all lines so far are kept. Rejects when they are not and will not be: then nothing more is told, and the next
   * `ensure` hears of them again.
   */
  kept?(): Promise<void>;
}

/** How a driver finds an instance again. Plain data: it is stored. */
export interface InstanceRef {
  instance_id: string;
  deployment_id: string;
  revision_id: string;
  /** The driver's own: pid and start time, or a container's id. */
  handle: string;
  address: string;
}

export type InstanceCondition = { state: "running" } | { state: "gone"; reason: string };

/** The build or the start failed because of what the user brought: its message is for them. Everything else is tried again. */
export class DeployError extends Error {}
