import { authServiceDocument } from "../../access/contract/routes.ts";
import * as deployments from "./deployments.ts";
import * as listeners from "./listeners.ts";
import * as logs from "./logs.ts";
import * as revisions from "./revisions.ts";

/**
 * The routes of deployments, at the root and below `/api-host`. Static paths come before paths with a parameter in the same
 * position. The comments repeat the method and path of each route.
 */
export const controlRoutes = {
  deployments: {
    listDeployments: deployments.listDeployments, // GET /v2/deployments
    createDeployment: deployments.createDeployment, // POST /v2/deployments
    deleteDeployments: deployments.deleteDeployments, // DELETE /v2/deployments
    countFreeDeployments: deployments.countFreeDeployments, // GET /v2/deployments/free-count
    getDeployment: deployments.getDeployment, // GET /v2/deployments/{deployment_id}
    patchDeployment: deployments.patchDeployment, // PATCH /v2/deployments/{deployment_id}
    deleteDeployment: deployments.deleteDeployment, // DELETE /v2/deployments/{deployment_id}
    createUploadUrl: deployments.createUploadUrl, // POST /v2/deployments/{deployment_id}/upload-url
    createPushToken: deployments.createPushToken, // POST /v2/deployments/{deployment_id}/push-token
  },
  revisions: {
    listRevisions: revisions.listRevisions, // GET /v2/deployments/{deployment_id}/revisions
    createRevision: revisions.createRevision, // POST /v2/deployments/{deployment_id}/revisions
    getRevision: revisions.getRevision, // GET /v2/deployments/{deployment_id}/revisions/{revision_id}
    redeployRevision: revisions.redeployRevision, // POST /v2/deployments/{deployment_id}/revisions/{revision_id}/redeploy
    interruptRevision: revisions.interruptRevision, // POST /v2/deployments/{deployment_id}/revisions/{revision_id}/interrupt
    interruptRevisionAlias: revisions.interruptRevisionAlias, // POST .../revisions/{revision_id}/interruption
  },
  logs: {
    getRevisionLogs: logs.getRevisionLogs, // GET /v2/deployments/{deployment_id}/revisions/{revision_id}/logs
    getLogs: logs.getLogs, // GET /v2/deployments/{deployment_id}/logs
    listLogs: logs.listLogs, // GET /v2/deployment-logs
    postBuildLogs: logs.postBuildLogs, // POST /v1/projects/{deployment_id}/revisions/{revision_id}/build_logs
    postRevisionDeployLogs: logs.postRevisionDeployLogs, // POST /v1/projects/{deployment_id}/revisions/{revision_id}/deploy_logs
    postDeployLogs: logs.postDeployLogs, // POST /v1/projects/{deployment_id}/deploy_logs
  },
  listeners: {
    listListeners: listeners.listListeners, // GET /v2/listeners
    createListener: listeners.createListener, // POST /v2/listeners
    getListener: listeners.getListener, // GET /v2/listeners/{listener_id}
    patchListener: listeners.patchListener, // PATCH /v2/listeners/{listener_id}
    deleteListener: listeners.deleteListener, // DELETE /v2/listeners/{listener_id}
  },
  integrations: {
    listInstallations: deployments.listInstallations, // GET /v1/integrations/github/install
    listRepositories: deployments.listRepositories, // GET /v1/integrations/github/{integration_id}/repos
    listForgeInstallations: deployments.listForgeInstallations, // GET /v1/integrations/forge/github/install
    listForgeRepositories: deployments.listForgeRepositories, // GET /v1/integrations/forge/github/{integration_id}/repos
  },
} as const;

/** The head of the OpenAPI document of the control plane, which includes the Auth Service. */
export const controlPlaneDocument = {
  ...authServiceDocument,
  info: {
    ...authServiceDocument.info,
    description: `Deployments of agents and their revisions. ${authServiceDocument.info.description}`,
  },
  tags: [
    { name: "Deployments (v2)", description: "Deployments, their revisions and logs." },
    { name: "Listeners (v2)", description: "Agents that deploy to other clusters." },
    { name: "Integrations (v1)", description: "GitHub applications." },
    { name: "Logs (v1)", description: "Logs for the command-line clients." },
    ...authServiceDocument.tags,
  ],
};
