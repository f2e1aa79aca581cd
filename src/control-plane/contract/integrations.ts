import { createRoute, z } from "@hono/zod-openapi";
import { jsonResponse } from "../../platform/contract/fields.ts";
import { laxUuid } from "../../platform/contract/lax-fields.ts";
import { operation, refusals } from "../../platform/contract/operation.ts";

const tags = ["Integrations (v1)"];

const installations = jsonResponse(
  z.array(
    z
      .object({ id: z.string().openapi({ format: "uuid" }), installation_id: z.int(), name: z.string() })
      .openapi("GitHubInstallation"),
  ),
  "None: repositories are named by their URL.",
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
  "None: repositories are named by their URL.",
);

const integrationParams = z.object({ integration_id: laxUuid });

export const listInstallations = createRoute({
  ...operation("list_github_integrations", "get", "/v1/integrations/github/install"),
  summary: "The workspace's GitHub integrations: there are none",
  tags,
  responses: { 200: installations },
});

export const listRepositories = createRoute({
  ...operation("list_github_repos", "get", "/v1/integrations/github/{integration_id}/repos"),
  summary: "The repositories of an integration: there are none",
  tags,
  request: { params: integrationParams },
  responses: { 200: repositories, ...refusals() },
});

export const listForgeInstallations = createRoute({
  ...operation("list_forge_github_integrations", "get", "/v1/integrations/forge/github/install"),
  summary: "The same, for another application of GitHub's",
  tags,
  responses: { 200: installations },
});

export const listForgeRepositories = createRoute({
  ...operation("list_forge_github_repos", "get", "/v1/integrations/forge/github/{integration_id}/repos"),
  summary: "The same, for another application of GitHub's",
  tags,
  request: { params: integrationParams },
  responses: { 200: repositories, ...refusals() },
});
