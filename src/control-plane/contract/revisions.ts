import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonResponse } from "../../platform/contract/fields.ts";
import { laxBoolean } from "../../platform/contract/lax-fields.ts";
import { operation, refusals } from "../../platform/contract/operation.ts";
import { DeploymentPatch } from "./deployments.ts";
import { commaSeparated, deploymentParams, pageOffset, pageSize, revisionParams } from "./fields.ts";
import { Deployment, Revision, RevisionsList } from "./records.ts";

const tags = ["Deployments (v2)"];

const RevisionsQuery = z.object({
  limit: pageSize(100, 20),
  offset: pageOffset,
  status: commaSeparated.optional(),
  remote_reconciled: laxBoolean.optional(),
});
export type RevisionsQuery = z.output<typeof RevisionsQuery>;

const interrupt = {
  tags,
  request: { params: revisionParams },
  responses: {
    200: jsonResponse(Revision, "The revision. Its status changes to `INTERRUPTED` asynchronously."),
    ...refusals(400, 404),
  },
};

export const revisionRoutes = {
  listRevisions: createRoute({
    ...operation("list_revisions", "get", "/v2/deployments/{deployment_id}/revisions"),
    summary: "List the revisions of a deployment, newest first",
    tags,
    request: { params: deploymentParams, query: RevisionsQuery },
    responses: { 200: jsonResponse(RevisionsList, "A page."), ...refusals(404) },
  }),

  createRevision: createRoute({
    ...operation("create_revision", "post", "/v2/deployments/{deployment_id}/revisions"),
    summary: "Update a deployment and always create a revision, even if the request changes nothing",
    tags,
    request: { params: deploymentParams, body: jsonBody(DeploymentPatch) },
    responses: { 201: jsonResponse(Revision, "The revision."), ...refusals(400, 404) },
  }),

  getRevision: createRoute({
    ...operation("get_revision", "get", "/v2/deployments/{deployment_id}/revisions/{revision_id}"),
    summary: "Get a revision",
    tags,
    request: { params: revisionParams },
    responses: { 200: jsonResponse(Revision, "The revision."), ...refusals(404) },
  }),

  redeployRevision: createRoute({
    ...operation("redeploy_revision", "post", "/v2/deployments/{deployment_id}/revisions/{revision_id}/redeploy"),
    summary: "Redeploy a revision from its existing build, for example to roll back",
    tags,
    request: { params: revisionParams },
    responses: { 200: jsonResponse(Deployment, "The deployment."), ...refusals(400, 404) },
  }),

  interruptRevision: createRoute({
    ...operation("interrupt_revision", "post", "/v2/deployments/{deployment_id}/revisions/{revision_id}/interrupt"),
    summary: "Interrupt a revision that is queued or in progress",
    ...interrupt,
  }),

  /** Alias for a third-party client. */
  interruptRevisionAlias: createRoute({
    ...operation(
      "interruption_revision",
      "post",
      "/v2/deployments/{deployment_id}/revisions/{revision_id}/interruption",
    ),
    summary: "Alias for `interrupt`",
    ...interrupt,
  }),
};
