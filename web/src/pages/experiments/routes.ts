import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute, textOf, whenOnline } from "../../page.ts";
import type { Sort } from "../../ui/table/columns.ts";

/** Parses the parameters of a list: search text and sort order. A column name with a leading `-` sorts in descending order. */
const listSearch = (search: Record<string, unknown>) => ({ q: textOf(search.q), sort: textOf(search.sort) });

export const datasetsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/experiments",
  validateSearch: (search): { q?: string; sort?: string } => listSearch(search),
  component: lazyRouteComponent(
    whenOnline(() => import("./datasets/datasets-page.tsx")),
    "DatasetsPage",
  ),
});

export interface DatasetSearch {
  q?: string;
  sort?: string;
  tab?: "examples";
  /** Comma-separated IDs of the selected experiments. */
  chosen?: string;
  /** ID of the example whose details are open. */
  example?: string;
  split?: string;
  /** Time of the version of the examples. */
  version?: string;
}

export const datasetRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/experiments/datasets/$id",
  validateSearch: (search): DatasetSearch => {
    const example = textOf(search.example);
    const isExamples = search.tab === "examples" || (example !== undefined && search.tab === undefined);
    return {
      ...listSearch(search),
      tab: isExamples ? "examples" : undefined,
      chosen: textOf(search.chosen),
      example,
      split: textOf(search.split),
      version: textOf(search.version),
    };
  },
  component: lazyRouteComponent(
    whenOnline(() => import("./datasets/dataset-page.tsx")),
    "DatasetPage",
  ),
});

export interface SessionSearch {
  sort?: string;
  /** ID of the run whose details are open. */
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
  component: lazyRouteComponent(
    whenOnline(() => import("./sessions/session-page.tsx")),
    "SessionPage",
  ),
});

/** Parses a sort order from the URL: a column name, with a leading `-` for descending order. */
export const sortOf = (text: string | undefined, default_sort: string): Sort => {
  const given = text ?? default_sort;
  return given.startsWith("-") ? { by: given.slice(1), descending: true } : { by: given, descending: false };
};

/** Formats a sort order for the URL. @returns undefined for the default order */
export const sortText = ({ by, descending }: Sort, default_sort: string): string | undefined => {
  const text = descending ? `-${by}` : by;
  return text === default_sort ? undefined : text;
};
