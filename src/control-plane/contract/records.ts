import { z } from "@hono/zod-openapi";
import { jsonObject, nullable, optional, timestamp } from "../../platform/contract/fields.ts";
import { laxInt, laxNumber } from "../../platform/contract/lax-fields.ts";

const scale = optional(laxInt({ ge: 0 }));
const megabytes = optional(laxInt({ ge: 1 }));
const cpu = optional(laxNumber({ ge: 0.1, le: 8 })).openapi({ description: "CPU request in cores." });
const cpuLimit = optional(laxNumber({ ge: 0.1, le: 16 })).openapi({
  description: "CPU limit in cores. Default: twice the CPU request.",
});

const stringMap = optional(z.record(z.string(), z.string()));
const named = z.looseObject({ name: z.string() });

/** Definition of a Kubernetes container. Unknown fields are stored. */
const container = z.looseObject({ name: z.string(), image: z.string() });

/** The resources of a deployment. All fields are optional; unknown fields are ignored. */
export const ResourceSpec = z
  .object({
    min_scale: scale,
    max_scale: scale,
    cpu,
    cpu_limit: cpuLimit,
    memory_mb: megabytes,
    memory_limit_mb: megabytes,
    queue_min_scale: scale,
    queue_max_scale: scale,
    queue_cpu: cpu,
    queue_cpu_limit: cpuLimit,
    queue_memory_mb: megabytes,
    queue_memory_limit_mb: megabytes,
    redis_cpu: cpu,
    redis_cpu_limit: cpuLimit,
    redis_memory_mb: megabytes,
    redis_memory_limit_mb: megabytes,
    db_cpu: cpu,
    db_cpu_limit: cpuLimit,
    db_memory_mb: megabytes,
    db_memory_limit_mb: megabytes,
    db_storage_gi: megabytes,
    db_max_connections: megabytes,
    labels: stringMap,
    annotations: stringMap,
    service_account_name: optional(z.string()),
    image_pull_secrets: optional(z.array(named)),
    volumes: optional(z.array(named)),
    volume_mounts: optional(z.array(jsonObject)),
    init_containers: optional(z.array(container)),
    sidecars: optional(z.array(container)),
  })
  .openapi("ResourceSpec");
export type ResourceSpec = z.output<typeof ResourceSpec>;

// Records of the API contain all fields; a field without a value is null.

export const SOURCES = ["github", "external_docker", "internal_docker", "internal_source"] as const;
export type Source = (typeof SOURCES)[number];

/** `dev_zero` is called `serverless` in `langgraph deploy`, where it has been the default since version 0.4.40. */
export const DEPLOYMENT_TYPES = ["dev_free", "dev_zero", "dev", "prod"] as const;

export const DeploymentStatus = z
  .enum(["AWAITING_DATABASE", "READY", "UNUSED", "AWAITING_DELETE", "UNKNOWN"])
  .openapi("DeploymentStatus");
export type DeploymentStatus = z.output<typeof DeploymentStatus>;

export const RevisionStatus = z
  .enum([
    "CREATING",
    "QUEUED",
    "AWAITING_BUILD",
    "BUILDING",
    "AWAITING_DEPLOY",
    "DEPLOYING",
    "CREATE_FAILED",
    "BUILD_FAILED",
    "DEPLOY_FAILED",
    "DEPLOYED",
    "SKIPPED",
    "INTERRUPTED",
    "UNKNOWN",
  ])
  .openapi("RevisionStatus");
export type RevisionStatus = z.output<typeof RevisionStatus>;

const source = z.enum(SOURCES).openapi("DeploymentSource", {
  description:
    "`github`: a git repository at any URL, not only on GitHub. `internal_source`: an uploaded tarball. `external_docker` and " +
    "`internal_docker`: a container image.",
});

const text = nullable(z.string());
const id = z.string().openapi({ format: "uuid" });
const nullableId = nullable(id);

/** The config of a deployment. Each revision stores a copy from the time of its creation. */
export const SourceConfig = z
  .object({
    integration_id: nullableId,
    repo_url: text,
    deployment_type: nullable(z.enum(DEPLOYMENT_TYPES)),
    build_on_push: nullable(z.boolean()),
    custom_url: text.openapi({ description: "Public URL of the deployment." }),
    resource_spec: nullable(ResourceSpec),
    listener_id: nullableId,
    listener_config: nullable(z.object({ k8s_namespace: text })),
    install_command: text,
    build_command: text,
  })
  .openapi("SourceConfig");
export type SourceConfig = z.output<typeof SourceConfig>;

/** The source of a revision. */
export const SourceRevisionConfig = z
  .object({
    repo_ref: text,
    repo_commit_sha: text.openapi({ description: "SHA of the commit that was built. Read-only." }),
    langgraph_config_path: text,
    image_uri: text,
    source_tarball_path: text.openapi({ description: "`object_path` of the uploaded tarball." }),
  })
  .openapi("SourceRevisionConfig");
export type SourceRevisionConfig = z.output<typeof SourceRevisionConfig>;

export const Secret = z
  .object({
    name: z.string(),
    value: z
      .string()
      .openapi({ description: "Value of the secret. Callers without the scope `admin` receive `********`." }),
  })
  .openapi("Secret");
export type Secret = z.output<typeof Secret>;

export const SecretReference = z
  .object({ name: z.string(), secret_name: z.string(), secret_key: z.string() })
  .openapi("SecretReference");
export type SecretReference = z.output<typeof SecretReference>;

export const Deployment = z
  .object({
    id,
    tenant_id: id,
    name: z.string(),
    source,
    source_config: SourceConfig,
    source_revision_config: SourceRevisionConfig.openapi({ description: "The config of the latest revision." }),
    secrets: z.array(Secret),
    secret_references: z.array(SecretReference),
    status: DeploymentStatus,
    latest_revision_id: nullableId,
    active_revision_id: nullableId.openapi({ description: "The revision that serves requests." }),
    image_version: text,
    created_at: timestamp,
    updated_at: timestamp,
  })
  .openapi("Deployment");
export type Deployment = z.output<typeof Deployment>;

export const Revision = z
  .object({
    id,
    status: RevisionStatus,
    status_message: text.openapi({
      description: "Reason for the status, or the most recent problem during the rollout.",
    }),
    source,
    source_revision_config: SourceRevisionConfig,
    can_redeploy: z.boolean().openapi({
      description:
        "Whether the revision has reached the status `DEPLOYED` at least once, still has its build, and is not in progress. While another revision is in progress, redeployment fails even if this field is true.",
    }),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .openapi("Revision");
export type Revision = z.output<typeof Revision>;

const next = z.int().openapi({ description: "`offset` of the next page." });

export const DeploymentsList = z.object({ resources: z.array(Deployment), offset: next }).openapi("DeploymentsList");
export type DeploymentsList = z.output<typeof DeploymentsList>;

export const RevisionsList = z.object({ resources: z.array(Revision), offset: next }).openapi("RevisionsList");
export type RevisionsList = z.output<typeof RevisionsList>;
