import type { Migration } from "../../platform/database/migrate.ts";

/** Deployments with their revisions, instances and logs; uploads of source; listeners. */
export const controlPlane: Migration = {
  name: "006-control-plane",
  statements: ({ types }) => [
    `create table deployments (
      deployment_id text primary key, tenant_id text not null, name text not null, slug text not null unique,
      source text not null, source_config text not null, secrets text, secret_references text not null,
      status text not null, latest_revision_id text, active_revision_id text, next_seq integer not null,
      created_by text not null, created_at ${types.bigint} not null, updated_at ${types.bigint} not null,
      lease_holder text, lease_until ${types.bigint}, lease_epoch integer not null, look_at ${types.bigint} not null,
      unique (tenant_id, name))`,
    "create index deployments_to_look_at on deployments (look_at)",
    `create table revisions (
      revision_id text primary key, deployment_id text not null, tenant_id text not null, seq integer not null,
      source text not null, source_config text not null, source_revision_config text not null, secrets text,
      secret_references text not null, status text not null, status_message text, artifact text, image_version text,
      interrupt_asked integer not null, built_at ${types.bigint}, deploying_at ${types.bigint},
      deployed_at ${types.bigint}, created_by text not null, created_at ${types.bigint} not null, updated_at ${types.bigint} not null,
      unique (deployment_id, seq))`,
    `create table instances (
      instance_id text primary key, deployment_id text not null, revision_id text not null, tenant_id text not null,
      rollout ${types.bigint} not null, replica integer not null, driver text not null, handle text, address text, api_key text not null,
      state text not null, drain_until ${types.bigint}, restarts integer not null, restart_at ${types.bigint},
      created_at ${types.bigint} not null, updated_at ${types.bigint} not null,
      unique (revision_id, rollout, replica))`,
    "create index instances_of_deployment on instances (deployment_id)",
    `create table deployment_logs (
      log_no ${types.sequence}, deployment_id text not null, revision_id text not null, tenant_id text not null,
      kind text not null, level text not null, message text not null, run_id text, at ${types.bigint} not null)`,
    "create index deployment_logs_of_deployment on deployment_logs (deployment_id, kind, at, log_no)",
    "create index deployment_logs_by_time on deployment_logs (at)",
    `create table source_uploads (
      object_path text primary key, tenant_id text not null, deployment_id text not null, token_digest text not null,
      size_bytes ${types.bigint}, sha256 text, expires_at ${types.bigint} not null,
      created_at ${types.bigint} not null)`,
    "create index source_uploads_by_end on source_uploads (expires_at)",
    `create table listeners (
      listener_id text primary key, tenant_id text not null, version text, compute_type text not null,
      compute_id text not null, compute_config text not null, created_at ${types.bigint} not null,
      updated_at ${types.bigint} not null, unique (tenant_id, compute_id))`,
  ],
};

/** The sealed password of a deployment's Postgres role. Null until an instance needs it. */
export const deploymentRoles: Migration = {
  name: "010-deployment-roles",
  statements: () => ["alter table deployments add column database_password text"],
};

/** Whether an instance authenticates users with handlers of the project. */
export const instanceAuth: Migration = {
  name: "023-instance-auth",
  statements: () => ["alter table instances add column custom_auth integer not null default 0"],
};
