import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute, textOf } from "../../page.ts";
import type { Sort } from "../../ui/table/columns.ts";

/** The parameters of all lists: search text and order. `-` before the name of a column means descending. */
const listSearch = (search: Record<string, unknown>) => ({ q: textOf(search.q), sort: textOf(search.sort) });

export const datasetsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/experiments",
  validateSearch: (search): { q?: string; sort?: string } => listSearch(search),
  component: lazyRouteComponent(() => import("./datasets/datasets-page.tsx"), "DatasetsPage"),
});

export interface DatasetSearch {
  q?: string;
  sort?: string;
  tab?: "examples";
  /** Selected experiments, separated by commas. */
  chosen?: string;
  /** The ID of the example that is open. */
  example?: string;
}

export const datasetRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/experiments/datasets/$id",
  validateSearch: (search): DatasetSearch => {
    const example = textOf(search.example);
    const isExamples = search.tab === "examples" || (example !== undefined && search.tab === undefined);
    return { ...listSearch(search), tab: isExamples ? "examples" : undefined, chosen: textOf(search.chosen), example };
  },
  component: lazyRouteComponent(() => import("./datasets/dataset-page.tsx"), "DatasetPage"),
});

export const unassignedSessionsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/experiments/sessions",
  validateSearch: (search): { q?: string } => ({ q: textOf(search.q) }),
  component: lazyRouteComponent(() => import("./sessions/unassigned-sessions-page.tsx"), "UnassignedSessionsPage"),
});

export interface SessionSearch {
  sort?: string;
  /** The ID of the run that is open. */
  run?: string;
  only?: "errors";
}

export const sessionRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/experiments/sessions/$id",
  validateSearch: (search): SessionSearch => ({
    sort: textOf(search.sort),
    run: textOf(search.run),
    only: search.only === "errors" ? "errors" : undefined,
  }),
  component: lazyRouteComponent(() => import("./sessions/session-page.tsx"), "SessionPage"),
});

/** Parses an order from the URL: the column, with a leading `-` for descending. */
export const sortOf = (text: string | undefined, default_sort: string): Sort => {
  const given = text ?? default_sort;
  return given.startsWith("-") ? { by: given.slice(1), descending: true } : { by: given, descending: false };
};

/** Formats an order for the URL. @returns undefined for the default order */
export const sortText = ({ by, descending }: Sort, default_sort: string): string | undefined => {
  const text = descending ? `-${by}` : by;
  return text === default_sort ? undefined : text;
};
