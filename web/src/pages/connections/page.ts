import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { Plug } from "lucide-react";
import { type Page, rootRoute } from "../../page.ts";

export interface ConnectionsSearch {
  /** The form for a new provider is open. */
  create?: true;
  /** The ID of the provider to connect an account to. */
  connect?: string;
}

export const connectionsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/connections",
  validateSearch: (search): ConnectionsSearch => ({
    create: search.create === true ? true : undefined,
    connect: typeof search.connect === "string" && search.connect !== "" ? search.connect : undefined,
  }),
  component: lazyRouteComponent(() => import("./connections-page.tsx"), "ConnectionsPage"),
});

export const connections: Page = {
  nav: { label: "Connections", to: "/connections", icon: Plug, scope: "tokens" },
  routes: [connectionsRoute],
};
