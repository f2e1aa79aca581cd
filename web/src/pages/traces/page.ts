import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { ListTree } from "lucide-react";
import type { Session } from "../../../../src/experiments/contract/sessions.ts";
import type { TracesPage } from "../../../../src/experiments/contract/traces/app-traces.ts";
import { api } from "../../api/request.ts";
import { type Page, rootRoute, textOf, whenOnline } from "../../page.ts";
import { type ProjectSearch, projectSearch } from "./project/search.ts";

export const projectsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/traces",
  validateSearch: (search): { q?: string; sort?: string } => ({ q: textOf(search.q), sort: textOf(search.sort) }),
  component: lazyRouteComponent(
    whenOnline(() => import("./projects-page.tsx")),
    "ProjectsPage",
  ),
});

export const projectRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/traces/projects/$id",
  validateSearch: (search): ProjectSearch => projectSearch(search),
  component: lazyRouteComponent(
    whenOnline(() => import("./project/project-page.tsx")),
    "ProjectPage",
  ),
});

/** Tabs of the selected run. The first is the default. */
export const RUN_TABS = ["io", "feedback", "details", "raw"] as const;
export type RunTab = (typeof RUN_TABS)[number];

export interface TraceSearch {
  /** ID of the selected run. Default: the root. */
  run?: string;
  /** Search text within the trace. */
  q?: string;
  tab?: RunTab;
}

const traceSearch = (search: Record<string, unknown>): TraceSearch => ({
  run: textOf(search.run),
  q: textOf(search.q),
  tab: RUN_TABS.slice(1).find((tab) => tab === search.tab),
});

export const traceRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/traces/$id",
  validateSearch: traceSearch,
  component: lazyRouteComponent(
    whenOnline(() => import("./trace/trace-page.tsx")),
    "TracePage",
  ),
});

/** A shared trace, or a shared run with its descendants. */
export const publicRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/public/$token",
  validateSearch: traceSearch,
  component: lazyRouteComponent(
    whenOnline(() => import("./trace/public-page.tsx")),
    "PublicPage",
  ),
});

/** Opens the trace of a run, or the experiment of an uploaded run. */
export const runRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/runs/$id",
  component: lazyRouteComponent(
    whenOnline(() => import("./run/run-redirect.tsx")),
    "RunRedirect",
  ),
});

const PALETTE_LIMIT = 6;
const COMPLETE_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export const traces: Page = {
  nav: { label: "Traces", to: "/traces", icon: ListTree, scope: "experiments" },
  routes: [projectsRoute, projectRoute, traceRoute, runRoute, publicRoute],
  palette: [
    {
      group: "Trace runs",
      find: async (text, signal) => {
        if (!COMPLETE_ID.test(text)) return [];
        const { runs } = await api.post<TracesPage>("/app/api/traces/query", { id: [text] }, { signal });
        return runs.map(({ id, name }) => ({ label: name || "Unnamed run", hint: "Trace", to: `/runs/${id}` }));
      },
    },
    {
      group: "Trace projects",
      find: async (text, signal) => {
        const query = { reference_free: true, name_contains: text || undefined, limit: PALETTE_LIMIT };
        const found = await api.get<Session[]>("/api/v1/sessions", { query, signal });
        return found.map(({ id, name }) => ({ label: name, hint: "Traces", to: `/traces/projects/${id}` }));
      },
    },
  ],
};
