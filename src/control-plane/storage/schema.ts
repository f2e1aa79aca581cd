import type { Generated } from "kysely";
import type { DeploymentStatus, RevisionStatus as ShownRevisionStatus } from "../contract/records.ts";

/**
 * The tables of the control plane in both databases. `_at` and `_until` are milliseconds since the epoch, lists and objects are JSON
 * text, flags are 0 or 1. Sealed columns are encrypted and bound to their row (src/access/encryption/seal.ts).
 */
declare module "../../platform/database/schema.ts" {
  interface Schema {
    deployments: DeploymentRow;
    revisions: RevisionRow;
    instances: InstanceRow;
    deployment_logs: DeploymentLogTable;
    source_uploads: SourceUploadRow;
    listeners: ListenerRow;
  }
}

/** reconcile/revision-transitions.ts has the transitions. */
export type RevisionStatus = Exclude<ShownRevisionStatus, "UNKNOWN">;

export interface DeploymentRow {
  deployment_id: string;
  tenant_id: string;
  name: string;
  /** The name in paths and host names, unique over all workspaces. */
  slug: string;
  /** `github`, `external_docker`, `internal_docker` or `internal_source`. */
  source: string;
  source_config: string;
  /** `[{name, value}]` of the latest revision, sealed; null for none. */
  secrets: string | null;
  secret_references: string;
  /** The password of its Postgres role, sealed; null before the first start of an instance. */
  database_password: string | null;
  status: DeploymentStatus;
  latest_revision_id: string | null;
  /** The revision that serves. Only a switch of the traffic changes it. */
  active_revision_id: string | null;
  /** The `seq` of the next revision. */
  next_seq: number;
  created_by: string;
  created_at: number;
  updated_at: number;
  /** The process that reconciles the deployment, and the end of its lease. */
  lease_holder: string | null;
  lease_until: number | null;
  /** Fencing token, incremented with each claim. Every write of a reconciler checks it. */
  lease_epoch: number;
  /** When a reconciler may claim a deployment without a lease. Every change of the desired state sets it to now. */
  look_at: number;
}

export interface RevisionRow {
  revision_id: string;
  deployment_id: string;
  tenant_id: string;
  /** 1, 2, 3 ... within the deployment. */
  seq: number;
  source: string;
  /** The config of the deployment when the revision was created. */
  source_config: string;
  source_revision_config: string;
  /** `[{name, value}]` when the revision was created, sealed; null for none. */
  secrets: string | null;
  secret_references: string;
  status: RevisionStatus;
  /** Why the revision failed, or the last observation of its instances. */
  status_message: string | null;
  /** The build: the name of a folder, or an image by digest. A revision with an artifact can be deployed again. */
  artifact: string | null;
  image_version: string | null;
  /** 1: an interrupt was requested. */
  interrupt_asked: number;
  built_at: number | null;
  /** The start of the rollout and of its deadline. Unique among the rollouts of a deployment. */
  deploying_at: number | null;
  /** Set when the revision is deployed again for the first time; not null means that it has been DEPLOYED once. */
  deployed_at: number | null;
  created_by: string;
  created_at: number;
  updated_at: number;
}

/** `wanted` has no process yet; `draining` takes no new requests. The row is deleted when the instance has stopped. */
type InstanceState = "wanted" | "starting" | "ready" | "draining";

export interface InstanceRow {
  instance_id: string;
  deployment_id: string;
  revision_id: string;
  tenant_id: string;
  /** `deploying_at` of its rollout. A revision that is deployed again gets new instances besides those that serve. */
  rollout: number;
  /** 0, 1, 2 ... within the rollout. */
  replica: number;
  /** `kind` of the driver. */
  driver: string;
  /** The driver's reference, which survives restarts: pid and start time, or the container's id. */
  handle: string | null;
  /** `http://127.0.0.1:port`; null before the start. */
  address: string | null;
  /** The key with which the router authenticates to the instance, sealed. */
  api_key: string;
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
  /** The id of the line on the wire. It is stable, so that clients recognize lines that they have. */
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
