import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "../../page.ts";

/** Texts of the address; what is empty or no text is not there. Numbers are read as texts: a name may be one. */
const text = (value: unknown): string | undefined =>
  typeof value === "string" || typeof value === "number" ? String(value) || undefined : undefined;

/** What every list has: the words that are looked for, and the order. `-` before the name of a column is downwards. */
const listed = (search: Record<string, unknown>) => ({ q: text(search.q), sort: text(search.sort) });

export const datasetsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/experiments",
  validateSearch: (search): { q?: string; sort?: string } => listed(search),
  component: lazyRouteComponent(() => import("./datasets-page.tsx"), "DatasetsPage"),
});

export interface DatasetSearch {
  q?: string;
  sort?: string;
  tab?: "examples";
  /** Experiments that are chosen for comparison, with commas. */
  chosen?: string;
  /** The example that is open. */
  example?: string;
}

export const datasetRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/experiments/datasets/$id",
  validateSearch: (search): DatasetSearch => {
    const example = text(search.example);
    const isExamples = search.tab === "examples" || (example !== undefined && search.tab === undefined);
    return { ...listed(search), tab: isExamples ? "examples" : undefined, chosen: text(search.chosen), example };
  },
  component: lazyRouteComponent(() => import("./dataset-page.tsx"), "DatasetPage"),
});

/** Experiments that belong to no dataset. */
export const looseSessionsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/experiments/sessions",
  validateSearch: (search): { q?: string } => ({ q: text(search.q) }),
  component: lazyRouteComponent(() => import("./loose-sessions-page.tsx"), "LooseSessionsPage"),
});

export interface SessionSearch {
  sort?: string;
  /** The run that is open. */
  run?: string;
  only?: "errors";
}

export const sessionRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/experiments/sessions/$id",
  validateSearch: (search): SessionSearch => ({
    sort: text(search.sort),
    run: text(search.run),
    only: search.only === "errors" ? "errors" : undefined,
  }),
  component: lazyRouteComponent(() => import("./session-page.tsx"), "SessionPage"),
});
