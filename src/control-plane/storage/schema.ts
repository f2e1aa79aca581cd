import type { Generated } from "kysely";
import type { DeploymentStatus, RevisionStatus as ShownRevisionStatus } from "../contract/records.ts";

/**
 * The tables of the control plane in both databases. `*_at` and `*_until` are milliseconds since the epoch, lists and objects are JSON
 * text, flags are 0 or 1. Sealed columns are encrypted and bound to their row (src/access/encryption/seal.ts).
 */
declare module "../../platform/database/database.ts" {
  interface Schema {
    deployments: DeploymentRow;
    revisions: RevisionRow;
    instances: InstanceRow;
    deployment_logs: DeploymentLogTable;
    source_uploads: SourceUploadRow;
    listeners: ListenerRow;
  }
}

/** reconcile/revision-transitions.ts defines the status transitions. */
export type RevisionStatus = Exclude<ShownRevisionStatus, "UNKNOWN">;

export interface DeploymentRow {
  deployment_id: string;
  tenant_id: string;
  name: string;
  /** Name of the deployment in paths and host names, unique across all workspaces. */
  slug: string;
  /** `github`, `external_docker`, `internal_docker` or `internal_source`. */
  source: string;
  source_config: string;
  /** Secrets of the latest revision as `[{name, value}]`, sealed; null if there are no secrets. */
  secrets: string | null;
  secret_references: string;
  /** Password of the deployment's Postgres role, sealed; null before the first start of an instance. */
  database_password: string | null;
  status: DeploymentStatus;
  latest_revision_id: string | null;
  /** Revision that serves requests. Changes only when the traffic is switched. */
  active_revision_id: string | null;
  /** The `seq` of the next revision. */
  next_seq: number;
  created_by: string;
  created_at: number;
  updated_at: number;
  /** Process that reconciles the deployment, and the expiry time of the process's lease. */
  lease_holder: string | null;
  lease_until: number | null;
  /** Fencing token, incremented with each claim. Every write of a reconciler checks the token. */
  lease_epoch: number;
  /** Earliest time at which a reconciler may claim the deployment. Every change of the desired state sets this time to now. */
  look_at: number;
}

export interface RevisionRow {
  revision_id: string;
  deployment_id: string;
  tenant_id: string;
  /** Number of the revision within the deployment: 1, 2, 3 ... */
  seq: number;
  source: string;
  /** Copy of the deployment's config at the time when the revision was created. */
  source_config: string;
  source_revision_config: string;
  /** Copy of the secrets at the time when the revision was created, sealed; null if there are no secrets. */
  secrets: string | null;
  secret_references: string;
  status: RevisionStatus;
  /** Reason for a failure, or the last observation of the revision's instances. */
  status_message: string | null;
  /** Folder name of the build, or image name; the image name is pinned by digest at the first deployment. */
  artifact: string | null;
  image_version: string | null;
  /** 1 if an interrupt was requested. */
  interrupt_asked: number;
  built_at: number | null;
  /** Start time of the rollout, from which the deadline is computed. Unique among the rollouts of a deployment. */
  deploying_at: number | null;
  /** Set when a DEPLOYED revision is first deployed again, so that later redeployments are possible even if a rollout fails. */
  deployed_at: number | null;
  created_by: string;
  created_at: number;
  updated_at: number;
}

/** A `wanted` instance has no process yet; a `draining` instance receives no new requests. The row of a stopped instance is deleted. */
type InstanceState = "wanted" | "starting" | "ready" | "draining";

export interface InstanceRow {
  instance_id: string;
  deployment_id: string;
  revision_id: string;
  tenant_id: string;
  /** `deploying_at` of the rollout. A revision that is deployed again gets new instances in addition to its serving instances. */
  rollout: number;
  /** Number of the instance within the rollout: 0, 1, 2 ... */
  replica: number;
  /** `kind` of the driver. */
  driver: string;
  /** The driver's reference to the instance, valid across restarts of the service: pid and start time, or container ID. */
  handle: string | null;
  /** `http://127.0.0.1:port`; null before the start. */
  address: string | null;
  /** The key with which the router authenticates to the instance, sealed. */
  api_key: string;
  /** 1 if the project's handlers authenticate users. Known when the instance is ready. */
  custom_auth: number;
  state: InstanceState;
  drain_until: number | null;
  /** Restarts since the instance was last stable. */
  restarts: number;
  restart_at: number | null;
  created_at: number;
  updated_at: number;
}

type DeploymentLogTable = Omit<DeploymentLogRow, "log_no"> & { log_no: Generated<number> };

export interface DeploymentLogRow {
  /** ID of the line in the API. The ID is stable, so that clients can deduplicate lines. */
  log_no: number;
  deployment_id: string;
  revision_id: string;
  tenant_id: string;
  kind: "build" | "deploy";
  level: string;
  message: string;
  run_id: string | null;
  at: number;
}

/** A source tarball, or the permission to upload it. */
export interface SourceUploadRow {
  object_path: string;
  tenant_id: string;
  deployment_id: string;
  /** SHA-256 of the token in the URL, in hex. */
  token_digest: string;
  /** Null until the upload is complete. */
  size_bytes: number | null;
  sha256: string | null;
  expires_at: number;
  created_at: number;
}

export interface ListenerRow {
  listener_id: string;
  tenant_id: string;
  version: string | null;
  compute_type: string;
  compute_id: string;
  compute_config: string;
  created_at: number;
  updated_at: number;
}
