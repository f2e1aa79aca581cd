import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonResponse, optional } from "../../platform/contract/fields.ts";
import { laxBoolean, laxUuid, oneOf } from "../../platform/contract/lax-fields.ts";
import { operation, refusals } from "../../platform/contract/operation.ts";
import { commaSeparated, deploymentParams, pageOffset, pageSize } from "./fields.ts";
import { DEPLOYMENT_TYPES, Deployment, DeploymentsList, ResourceSpec, SOURCES } from "./records.ts";

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

/** src/control-plane/deployments/secrets.ts validates the names. */
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

/** Fields that are missing or null stay unchanged. */
export const DeploymentPatch = z
  .object({
    revision_source: optional(oneOf(["github", "internal_docker", "internal_source"])),
    source_config: optional(SourceConfigInput),
    source_revision_config: optional(SourceRevisionConfigInput),
    secrets: optional(secrets).openapi({
      description: "Complete list of secrets. Secrets that are missing from this list are deleted.",
    }),
    secret_references: optional(secretReferences),
  })
  .openapi("DeploymentPatchRequest");
export type DeploymentPatch = z.output<typeof DeploymentPatch>;

const DeploymentsQuery = z.object({
  limit: pageSize(100, 20),
  offset: pageOffset,
  name: z.string().optional().openapi({ description: "Exact name of the deployment." }),
  name_contains: z
    .string()
    .optional()
    .openapi({ description: "Part of the name, case-insensitive. An exact match is listed first." }),
  status: z.string().optional(),
  remote_reconciled: laxBoolean.optional().openapi({ description: "Whether the deployment is bound to a listener." }),
  tag_value_ids: commaSeparated
    .optional()
    .openapi({ description: "Not supported. If set, the result is empty, because deployments have no tags." }),
  agent_id: z.string().optional().openapi({
    description: "Not supported. If set, the result is empty, because deployments are not associated with an agent ID.",
  }),
  agent_environment: z.string().optional().openapi({ description: "Not supported, like `agent_id`." }),
  image_version: z.string().optional(),
  deployment_type: oneOf(DEPLOYMENT_TYPES).optional(),
  deployment_ids: commaSeparated.optional(),
});
export type DeploymentsQuery = z.output<typeof DeploymentsQuery>;

const BatchDeleted = z
  .object({ deleted: z.array(z.string()), not_found: z.array(z.string()) })
  .openapi("DeploymentsDeleted");
export type BatchDeleted = z.output<typeof BatchDeleted>;

const UploadUrl = z
  .object({
    upload_url: z.string().openapi({
      description: "Upload the tarball with one PUT request to this URL within an hour. No API key is required.",
    }),
    object_path: z.string().openapi({ description: "Value for `source_tarball_path` after the upload." }),
  })
  .openapi("UploadUrl");
export type UploadUrl = z.output<typeof UploadUrl>;

const integrationTags = ["Integrations (v1)"];

const installations = jsonResponse(
  z.array(
    z
      .object({ id: z.string().openapi({ format: "uuid" }), installation_id: z.int(), name: z.string() })
      .openapi("GitHubInstallation"),
  ),
  "Always empty: deployments refer to repositories by URL.",
);

const repositories = jsonResponse(
  z.array(
    z
      .object({
        host_integration_id: z.string(),
        id: z.int(),
        name: z.string(),
        owner: z.string(),
        url: z.string(),
        default_branch: z.string(),
      })
      .openapi("GitHubRepository"),
  ),
  "Always empty: deployments refer to repositories by URL.",
);

const repositoriesOfIntegration = {
  tags: integrationTags,
  request: { params: z.object({ integration_id: laxUuid }) },
  responses: { 200: repositories, ...refusals() },
};

export const deploymentRoutes = {
  listDeployments: createRoute({
    ...operation("list_deployments", "get", "/v2/deployments"),
    summary: "List the deployments of the workspace, newest first",
    tags,
    request: { query: DeploymentsQuery },
    responses: { 200: jsonResponse(DeploymentsList, "A page."), ...refusals() },
  }),

  createDeployment: createRoute({
    ...operation("create_deployment", "post", "/v2/deployments"),
    summary:
      "Create a deployment and its first revision. If source_revision_config is empty and the source is internal_source or internal_docker, only the deployment is created",
    tags,
    request: { body: jsonBody(DeploymentCreate) },
    responses: { 201: jsonResponse(Deployment, "The deployment."), ...refusals(400) },
  }),

  deleteDeployments: createRoute({
    ...operation("delete_deployments", "delete", "/v2/deployments"),
    summary: "Delete several deployments",
    tags,
    request: { query: z.object({ deployment_ids: z.array(laxUuid).min(1).max(1000) }) },
    responses: {
      200: jsonResponse(BatchDeleted, "All deployments in the request are being deleted."),
      207: jsonResponse(
        BatchDeleted,
        "Some deployments do not exist. All existing deployments in the request are being deleted.",
      ),
      ...refusals(404),
    },
  }),

  countFreeDeployments: createRoute({
    ...operation("count_free_deployments", "get", "/v2/deployments/free-count"),
    summary: "Count deployments of type dev_free",
    tags,
    responses: {
      200: jsonResponse(z.object({ count: z.int() }).openapi("FreeDeploymentCount"), "The number of deployments."),
    },
  }),

  getDeployment: createRoute({
    ...operation("get_deployment", "get", "/v2/deployments/{deployment_id}"),
    summary: "Get a deployment",
    tags,
    request: { params: deploymentParams },
    responses: { 200: jsonResponse(Deployment, "The deployment."), ...refusals(404) },
  }),

  patchDeployment: createRoute({
    ...operation("patch_deployment", "patch", "/v2/deployments/{deployment_id}"),
    summary:
      "Update a deployment. A request that contains a source creates a revision. If the deployment already has a source, a request that contains secrets or resources also creates a revision",
    tags,
    request: { params: deploymentParams, body: jsonBody(DeploymentPatch) },
    responses: { 200: jsonResponse(Deployment, "The updated deployment."), ...refusals(400, 404) },
  }),

  deleteDeployment: createRoute({
    ...operation("delete_deployment", "delete", "/v2/deployments/{deployment_id}"),
    summary: "Delete a deployment and stop its instances in the background",
    tags,
    request: {
      params: deploymentParams,
      query: z.object({
        delete_tracing_project: laxBoolean.default(false).openapi({ default: false }),
        force: laxBoolean.default(false).openapi({ default: false }),
      }),
    },
    responses: { 204: { description: "The deployment is being deleted." }, ...refusals(404) },
  }),

  createUploadUrl: createRoute({
    ...operation("create_upload_url", "post", "/v2/deployments/{deployment_id}/upload-url"),
    summary: "Create an upload URL for a source tarball",
    tags,
    request: { params: deploymentParams },
    responses: { 200: jsonResponse(UploadUrl, "Upload URL. The URL contains a token."), ...refusals(400, 404) },
  }),

  createPushToken: createRoute({
    ...operation("create_push_token", "post", "/v2/deployments/{deployment_id}/push-token"),
    summary: "Create an image push token. Always fails, because this service has no image registry",
    tags,
    request: { params: deploymentParams },
    responses: {
      200: jsonResponse(
        z.object({ token: z.string(), registry_url: z.string() }).openapi("PushToken"),
        "Never returned.",
      ),
      ...refusals(400, 404),
    },
  }),
};

export const integrationRoutes = {
  listInstallations: createRoute({
    ...operation("list_github_integrations", "get", "/v1/integrations/github/install"),
    summary: "List GitHub integrations (always empty)",
    tags: integrationTags,
    responses: { 200: installations },
  }),

  listRepositories: createRoute({
    ...operation("list_github_repos", "get", "/v1/integrations/github/{integration_id}/repos"),
    summary: "List an integration's repositories (always empty)",
    ...repositoriesOfIntegration,
  }),

  listForgeInstallations: createRoute({
    ...operation("list_forge_github_integrations", "get", "/v1/integrations/forge/github/install"),
    summary: 'List integrations of the "forge" GitHub App (always empty)',
    tags: integrationTags,
    responses: { 200: installations },
  }),

  listForgeRepositories: createRoute({
    ...operation("list_forge_github_repos", "get", "/v1/integrations/forge/github/{integration_id}/repos"),
    summary: 'List repositories of the "forge" GitHub App (always empty)',
    ...repositoriesOfIntegration,
  }),
};
