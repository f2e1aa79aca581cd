import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { Bot } from "lucide-react";
import { type Page, rootRoute, textOf, whenOnline } from "../../page.ts";
import { findAssistants } from "./queries.ts";

export interface AgentsSearch {
  graph?: string;
  /** Search text for the name or description. */
  q?: string;
}

export const agentsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/agents",
  validateSearch: (search): AgentsSearch => ({
    graph: textOf(search.graph),
    q: textOf(search.q),
  }),
  component: lazyRouteComponent(
    whenOnline(() => import("./agents-page.tsx")),
    "AgentsPage",
  ),
});

export const SECTIONS = ["graph", "configuration", "versions"] as const;
export type Section = (typeof SECTIONS)[number];

export interface AgentView {
  /** Default: the graph section. */
  section?: Section;
  /** Number of the version whose details are open. */
  version?: number;
  xray?: boolean;
}

export const agentRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/agents/$assistant_id",
  validateSearch: (search): AgentView => ({
    section: SECTIONS.find((section) => section === search.section),
    version: Number.isInteger(search.version) ? Number(search.version) : undefined,
    xray: search.xray === true || undefined,
  }),
  component: lazyRouteComponent(
    whenOnline(() => import("./agent-page.tsx")),
    "AgentPage",
  ),
});

export const agents: Page = {
  nav: { label: "Agents", to: "/agents", icon: Bot, scope: "agents" },
  routes: [agentsRoute, agentRoute],
  palette: [
    {
      group: "Agents",
      find: async (text, signal) =>
        (await findAssistants({ name: text, limit: 10 }, { signal })).map(({ assistant_id, name, graph_id }) => ({
          label: name,
          hint: graph_id,
          to: `/agents/${assistant_id}`,
        })),
    },
  ],
};
