/** The exports of the control plane for other modules, besides its contract. */
export type { Control } from "./control.ts";
export type { DeploymentRouter } from "./router/deployment-router.ts";
export type { Client, Origin } from "./router/headers.ts";
export type { Deployment } from "./router/routes.ts";
