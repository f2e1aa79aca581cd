import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { Plug } from "lucide-react";
import { type Page, rootRoute, textOf, whenOnline } from "../../page.ts";

export interface ConnectionsSearch {
  create?: true;
  /** ID of the provider whose Connect dialog is open. */
  connect?: string;
}

export const connectionsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/connections",
  validateSearch: (search): ConnectionsSearch => ({
    create: search.create === true ? true : undefined,
    connect: textOf(search.connect),
  }),
  component: lazyRouteComponent(
    whenOnline(() => import("./connections-page.tsx")),
    "ConnectionsPage",
  ),
});

export const connections: Page = {
  nav: { label: "Connections", to: "/connections", icon: Plug, scope: "tokens" },
  routes: [connectionsRoute],
};
