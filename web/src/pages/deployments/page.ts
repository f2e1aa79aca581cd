import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { Rocket } from "lucide-react";
import type { DeploymentsList } from "../../../../src/control-plane/contract/records.ts";
import { api } from "../../api/request.ts";
import { type Page, rootRoute, textOf, whenOnline } from "../../page.ts";

export interface DeploymentsSearch {
  /** Filter text for the deployment's name. */
  name?: string;
  /** Whether the form for a new deployment is open. */
  create?: true;
}

export const deploymentsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/deployments",
  validateSearch: (search): DeploymentsSearch => ({
    name: textOf(search.name),
    create: search.create === true ? true : undefined,
  }),
  component: lazyRouteComponent(
    whenOnline(() => import("./deployments-page.tsx")),
    "DeploymentsPage",
  ),
});

export const TABS = ["revisions", "logs", "secrets"] as const;
export type Tab = (typeof TABS)[number];

export const LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR"] as const;
export type Level = (typeof LEVELS)[number];

export interface DeploymentSearch {
  tab?: Tab;
  /** ID of the revision whose logs are shown. Default: the latest revision. */
  revision?: string;
  /** `build` for the build log (the default), `deploy` for the server log. */
  logs?: "build" | "deploy";
  level?: Level;
  /** Filter text for log lines. */
  text?: string;
}

export const deploymentRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/deployments/$id",
  validateSearch: (search): DeploymentSearch => ({
    tab: TABS.find((tab) => tab === search.tab),
    revision: textOf(search.revision),
    logs: (["build", "deploy"] as const).find((kind) => kind === search.logs),
    level: LEVELS.find((level) => level === search.level),
    text: textOf(search.text),
  }),
  component: lazyRouteComponent(
    whenOnline(() => import("./deployment-page.tsx")),
    "DeploymentPage",
  ),
});

export const deployments: Page = {
  nav: { label: "Deployments", to: "/deployments", icon: Rocket, scope: "deployments" },
  routes: [deploymentsRoute, deploymentRoute],
  palette: [
    {
      group: "Deployments",
      async find(asked, signal) {
        const query = { name_contains: asked, limit: 10 };
        const { resources } = await api.get<DeploymentsList>("/v2/deployments", { query, signal });
        return resources.map(({ id, name, source }) => ({ label: name, hint: source, to: `/deployments/${id}` }));
      },
    },
  ],
};
