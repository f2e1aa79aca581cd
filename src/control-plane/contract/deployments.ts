import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonResponse, optional } from "../../platform/contract/fields.ts";
import { laxBoolean, laxUuid, oneOf } from "../../platform/contract/lax-fields.ts";
import { operation, refusals } from "../../platform/contract/operation.ts";
import { commaSeparated, deploymentParams, pageOffset, pageSize } from "./fields.ts";
import { DEPLOYMENT_TYPES, Deployment, DeploymentsList, SOURCES } from "./records.ts";
import { ResourceSpec } from "./resource-spec.ts";

const tags = ["Deployments (v2)"];

const text = optional(z.string().max(5000));

const SourceConfigInput = z
  .object({
    integration_id: optional(laxUuid),
    repo_url: text,
    deployment_type: optional(oneOf(DEPLOYMENT_TYPES)),
    build_on_push: optional(laxBoolean),
    custom_url: text,
    resource_spec: optional(ResourceSpec),
    listener_id: optional(laxUuid),
    listener_config: optional(z.object({ k8s_namespace: text })),
    install_command: text,
    build_command: text,
  })
  .openapi("SourceConfigInput");
export type SourceConfigInput = z.output<typeof SourceConfigInput>;

const SourceRevisionConfigInput = z
  .object({ repo_ref: text, langgraph_config_path: text, image_uri: text, source_tarball_path: text })
  .openapi("SourceRevisionConfigInput");
export type SourceRevisionConfigInput = z.output<typeof SourceRevisionConfigInput>;

/** Which names are allowed is a rule of src/control-plane/secrets.ts. */
const secrets = z.array(z.object({ name: z.string().min(1).max(255), value: z.string().max(100_000) })).max(500);

const secretReferences = z
  .array(z.object({ name: z.string().min(1).max(255), secret_name: z.string(), secret_key: z.string() }))
  .max(500);

const DeploymentCreate = z
  .object({
    name: z.string().min(1).max(255),
    source: oneOf(SOURCES),
    source_config: SourceConfigInput,
    source_revision_config: SourceRevisionConfigInput,
    secrets: optional(secrets),
    secret_references: optional(secretReferences),
  })
  .openapi("DeploymentCreateRequest");
export type DeploymentCreate = z.output<typeof DeploymentCreate>;

/** What is missing or null stays as it is. */
export const DeploymentPatch = z
  .object({
    revision_source: optional(oneOf(["github", "internal_docker", "internal_source"])),
    source_config: optional(SourceConfigInput),
    source_revision_config: optional(SourceRevisionConfigInput),
    secrets: optional(secrets).openapi({ description: "All of them: those that are not named are gone." }),
    secret_references: optional(secretReferences),
  })
  .openapi("DeploymentPatchRequest");
export type DeploymentPatch = z.output<typeof DeploymentPatch>;

const DeploymentsQuery = z.object({
  limit: pageSize(100, 20),
  offset: pageOffset,
  name: z.string().optional().openapi({ description: "Exactly this name." }),
  name_contains: z
    .string()
    .optional()
    .openapi({ description: "In any case. The one of exactly that name comes first." }),
  status: z.string().optional(),
  remote_reconciled: laxBoolean.optional().openapi({ description: "Whether it is bound to a listener." }),
  tag_value_ids: commaSeparated.optional().openapi({ description: "Nothing has tags here." }),
  agent_id: z.string().optional().openapi({ description: "No deployment is known by its agent here." }),
  agent_environment: z.string().optional().openapi({ description: "The same." }),
  image_version: z.string().optional(),
  deployment_type: oneOf(DEPLOYMENT_TYPES).optional(),
  deployment_ids: commaSeparated.optional(),
});
export type DeploymentsQuery = z.output<typeof DeploymentsQuery>;

export const listDeployments = createRoute({
  ...operation("list_deployments", "get", "/v2/deployments"),
  summary: "The workspace's deployments, the newest first",
  tags,
  request: { query: DeploymentsQuery },
  responses: { 200: jsonResponse(DeploymentsList, "A page."), ...refusals() },
});

export const createDeployment = createRoute({
  ...operation("create_deployment", "post", "/v2/deployments"),
  summary: "Create a deployment, with its first revision",
  tags,
  request: { body: jsonBody(DeploymentCreate) },
  responses: { 201: jsonResponse(Deployment, "The deployment."), ...refusals(400) },
});

const BatchDeleted = z
  .object({ deleted: z.array(z.string()), not_found: z.array(z.string()) })
  .openapi("DeploymentsDeleted");
export type BatchDeleted = z.output<typeof BatchDeleted>;

export const deleteDeployments = createRoute({
  ...operation("delete_deployments", "delete", "/v2/deployments"),
  summary: "Delete several deployments",
  tags,
  request: { query: z.object({ deployment_ids: z.array(laxUuid).min(1).max(1000) }) },
  responses: {
    200: jsonResponse(BatchDeleted, "All of them are being deleted."),
    207: jsonResponse(BatchDeleted, "Some of them are not there; the others are being deleted."),
    ...refusals(404),
  },
});

export const countFreeDeployments = createRoute({
  ...operation("count_free_deployments", "get", "/v2/deployments/free-count"),
  summary: "How many deployments of the type dev_free the workspace has",
  tags,
  responses: { 200: jsonResponse(z.object({ count: z.int() }).openapi("FreeDeploymentCount"), "How many.") },
});

export const getDeployment = createRoute({
  ...operation("get_deployment", "get", "/v2/deployments/{deployment_id}"),
  summary: "A deployment",
  tags,
  request: { params: deploymentParams },
  responses: { 200: jsonResponse(Deployment, "The deployment."), ...refusals(404) },
});

export const patchDeployment = createRoute({
  ...operation("patch_deployment", "patch", "/v2/deployments/{deployment_id}"),
  summary: "Change a deployment; secrets, resources or another source make a revision",
  tags,
  request: { params: deploymentParams, body: jsonBody(DeploymentPatch) },
  responses: { 200: jsonResponse(Deployment, "The deployment as it is now."), ...refusals(400, 404) },
});

export const deleteDeployment = createRoute({
  ...operation("delete_deployment", "delete", "/v2/deployments/{deployment_id}"),
  summary: "Delete a deployment; what runs of it is stopped soon after",
  tags,
  request: {
    params: deploymentParams,
    query: z.object({
      delete_tracing_project: laxBoolean.default(false).openapi({ default: false }),
      force: laxBoolean.default(false).openapi({ default: false }),
    }),
  },
  responses: { 204: { description: "It is being deleted." }, ...refusals(404) },
});

const UploadUrl = z
  .object({
    upload_url: z.string().openapi({ description: "PUT the tarball there, once, within the hour. It needs no key." }),
    object_path: z.string().openapi({ description: "For `source_tarball_path`." }),
  })
  .openapi("UploadUrl");
export type UploadUrl = z.output<typeof UploadUrl>;

export const createUploadUrl = createRoute({
  ...operation("create_upload_url", "post", "/v2/deployments/{deployment_id}/upload-url"),
  summary: "Where to bring a tarball of source",
  tags,
  request: { params: deploymentParams },
  responses: { 200: jsonResponse(UploadUrl, "An address with its permission in it."), ...refusals(400, 404) },
});

export const createPushToken = createRoute({
  ...operation("create_push_token", "post", "/v2/deployments/{deployment_id}/push-token"),
  summary: "Permission to push an image: there is no registry here",
  tags,
  request: { params: deploymentParams },
  responses: {
    200: jsonResponse(z.object({ token: z.string(), registry_url: z.string() }).openapi("PushToken"), "Never."),
    ...refusals(400, 404),
  },
});
