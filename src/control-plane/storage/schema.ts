import type { Generated } from "kysely";

/**
 * The tables of the control plane, as both databases hold them. `_at` and `_until` are milliseconds since the epoch, lists and
 * objects are JSON text, flags are 0 or 1. What is called sealed is encrypted (src/access/encryption/seal.ts) and bound to its place.
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

export type DeploymentStatus = "AWAITING_DATABASE" | "READY" | "UNUSED" | "AWAITING_DELETE" | "UNKNOWN";

/** The end of each way through the machine of src/control-plane/reconcile/revision-states.ts is one of the last six. */
export type RevisionStatus =
  | "CREATING"
  | "QUEUED"
  | "AWAITING_BUILD"
  | "BUILDING"
  | "AWAITING_DEPLOY"
  | "DEPLOYING"
  | "CREATE_FAILED"
  | "BUILD_FAILED"
  | "DEPLOY_FAILED"
  | "DEPLOYED"
  | "SKIPPED"
  | "INTERRUPTED";

export interface DeploymentRow {
  deployment_id: string;
  tenant_id: string;
  name: string;
  /** The name as a path and a host name can have it, unique over all workspaces. */
  slug: string;
  /** `github`, `external_docker`, `internal_docker` or `internal_source`. */
  source: string;
  source_config: string;
  /** `[{name, value}]` of the latest revision, sealed; null for none. */
  secrets: string | null;
  secret_references: string;
  /** Of its role on Postgres, sealed; null until an instance was started. */
  database_password: string | null;
  status: DeploymentStatus;
  latest_revision_id: string | null;
  /** The revision that serves. Changes with the switch of the traffic alone. */
  active_revision_id: string | null;
  /** The number of the next revision. */
  next_seq: number;
  created_by: string;
  created_at: number;
  updated_at: number;
  /** The process that reconciles it, and until when. */
  lease_holder: string | null;
  lease_until: number | null;
  /** Fencing token: plus one each time the lease changes hands. Every write of a reconciler names it. */
  lease_epoch: number;
  /** When a reconciler is to take it, if nobody has. Whoever changes what is wanted sets it to now. */
  look_at: number;
}

export interface RevisionRow {
  revision_id: string;
  deployment_id: string;
  tenant_id: string;
  /** 1, 2, 3 ... within the deployment. */
  seq: number;
  source: string;
  /** The deployment's as it was then. */
  source_config: string;
  source_revision_config: string;
  /** `[{name, value}]` as they were then, sealed; null for none. */
  secrets: string | null;
  secret_references: string;
  status: RevisionStatus;
  /** Why it failed, or what is awaited, in a sentence. */
  status_message: string | null;
  /** What was built: the name of a folder, or an image by digest. With it the revision can be deployed again. */
  artifact: string | null;
  image_version: string | null;
  /** 1: somebody wants it stopped. */
  interrupt_asked: number;
  built_at: number | null;
  /** When its deploying began: the health deadline counts from here. No two roll-outs of a revision have the same. */
  deploying_at: number | null;
  /** Set with its first redeployment: it has been DEPLOYED before, whatever becomes of it now. */
  deployed_at: number | null;
  created_by: string;
  created_at: number;
  updated_at: number;
}

/** `wanted` has no process yet; `draining` takes no new requests; the row goes when it has stopped. */
export type InstanceState = "wanted" | "starting" | "ready" | "draining";

/** One running copy of a revision. */
export interface InstanceRow {
  instance_id: string;
  deployment_id: string;
  revision_id: string;
  tenant_id: string;
  /** The `deploying_at` for which it was made: a revision that is deployed again gets new ones beside those that serve. */
  rollout: number;
  /** 0, 1, 2 ... within the roll-out. */
  replica: number;
  /** Which driver has it. */
  driver: string;
  /** What the driver finds it by, also after a restart: pid and start time, or the container's id. */
  handle: string | null;
  /** `http://127.0.0.1:port`, once it is known. */
  address: string | null;
  /** What the router shows the instance, sealed: nobody else gets past it. */
  api_key: string;
  state: InstanceState;
  drain_until: number | null;
  /** Since it was last ready. */
  restarts: number;
  restart_at: number | null;
  created_at: number;
  updated_at: number;
}

type DeploymentLogTable = Omit<DeploymentLogRow, "log_no"> & { log_no: Generated<number> };

export interface DeploymentLogRow {
  /** The line's id on the wire: stable, so that followers recognise what they have. */
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

/** A source tarball, or the permission to bring one. */
export interface SourceUploadRow {
  object_path: string;
  tenant_id: string;
  deployment_id: string;
  /** SHA-256 of the token in the URL, in hex. */
  token_digest: string;
  /** Null until it has arrived whole. */
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
