import { authServiceDocument } from "../../access/contract/routes.ts";
import { deploymentRoutes, integrationRoutes } from "./deployments.ts";
import { listenerRoutes } from "./listeners.ts";
import { logRoutes } from "./logs.ts";
import { revisionRoutes } from "./revisions.ts";

/** The routes of deployments, at the root and below `/api-host`. */
export const controlRoutes = {
  deployments: deploymentRoutes,
  revisions: revisionRoutes,
  logs: logRoutes,
  listeners: listenerRoutes,
  integrations: integrationRoutes,
} as const;

/** The control plane's OpenAPI document without its paths and schemas. The document includes the Auth Service. */
export const controlPlaneDocument = {
  ...authServiceDocument,
  info: {
    ...authServiceDocument.info,
    description: `Agent deployments and their revisions. ${authServiceDocument.info.description}`,
  },
  tags: [
    { name: "Deployments (v2)", description: "Deployments, their revisions and logs." },
    {
      name: "Listeners (v2)",
      description:
        "Listeners: programs that deploy images to other clusters, through a connection that they open to this service.",
    },
    { name: "Integrations (v1)", description: "GitHub applications." },
    { name: "Logs (v1)", description: "Logs in the format that the command-line clients expect." },
    ...authServiceDocument.tags,
  ],
};
